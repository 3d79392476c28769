// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Column-major float matrix products for the cuBLAS stand-in.
#pragma once

namespace ptxcpu {

// c = alpha op(a) op(b) + beta c, `batch` times; op(a) is (m, k), op(b) is (k, n).
struct Gemm {
  bool transpose_a = false, transpose_b = false, tf32 = false;
  int m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0, batch = 1;
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  long long stride_a = 0, stride_b = 0, stride_c = 0;
  float alpha = 1, beta = 0;
  const float* alpha_pointer = nullptr;  // in device memory; replaces alpha
  const float* beta_pointer = nullptr;
};

void multiply(const Gemm& gemm);

}  // namespace ptxcpu
