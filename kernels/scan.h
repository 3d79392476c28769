// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

inline constexpr int64_t kScanChunk = 16384;  // values per partial sum

struct CumulativeSum {  // y_i = sum_{k <= i} x_k, in double: a million weights of 1e-6 must not vanish
  Vec<const float> x;
  Vec<double> y;  // out
};
void cumulative_sum(Context& ctx, const CumulativeSum& op);

// result_k = the value at rank floor(p_k (n - 1)) of x sorted ascending; NaN if any x is NaN.
struct Quantiles {
  Vec<const float> x;
  Vec<const float> p;  // host memory, in [0, 1]
  Vec<float> result;   // out (p.size), the backend's memory
};
void quantiles(Context& ctx, const Quantiles& op);

inline int64_t quantile_rank(float p, int64_t n) {
  return static_cast<int64_t>(static_cast<double>(p) * static_cast<double>(n - 1));
}

size_t scan_scratch_bytes(int64_t n);  // enough for each of the two

}  // namespace pwdice
