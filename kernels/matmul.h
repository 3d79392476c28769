// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

// c = op(a) op(b), op(x) = x or x^T. The general product of the tape; layers use linear.h.
struct Matmul {
  Mat<const float> a, b;
  bool transpose_a, transpose_b;
  Mat<float> c;  // out
};
void matmul(Context& ctx, const Matmul& op);
size_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k);

}  // namespace pwdice
