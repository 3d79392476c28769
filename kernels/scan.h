// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

struct CumulativeSum {  // y_i = sum_{k <= i} x_k, in double: a million weights of 1e-6 must not vanish
  Vec<const float> x;
  Vec<double> y;  // out
};
void cumulative_sum(Context& ctx, const CumulativeSum& op);

// result_k = the value at rank floor(p_k (n - 1)) of x sorted ascending.
struct Quantiles {
  Vec<const float> x;
  Vec<const float> p;  // host memory, in [0, 1]
  Vec<float> result;   // out (p.size), the backend's memory
};
void quantiles(Context& ctx, const Quantiles& op);

size_t scan_scratch_bytes(int64_t n);  // enough for each of the two

}  // namespace pwdice
