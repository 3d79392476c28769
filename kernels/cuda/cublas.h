// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <memory>

namespace pwdice::cuda {

struct State;

// cuBLAS, for comparison with the CUTLASS kernels. Loaded at run time (PWDICE_CUBLAS_LIBRARY, else
// libcublas.so.13 or .12), because a program linked to it does not start where it is absent.
class CuBlas {
 public:
  explicit CuBlas(State& state);  // throws Unsupported when the library cannot be loaded
  ~CuBlas();
  CuBlas(const CuBlas&) = delete;
  CuBlas& operator=(const CuBlas&) = delete;

  // Row-major c (m, n) = op(a) op(b), leading dimensions in elements.
  struct Product {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    const float* a;
    int64_t lda;
    const float* b;
    int64_t ldb;
    float* c;
    int64_t ldc;
  };
  void multiply(const Product& product, bool tf32, const char* op);

 private:
  struct Api;
  State& state_;
  std::unique_ptr<Api> api_;
  void* handle_ = nullptr;
  void* workspace_ = nullptr;
};

}  // namespace pwdice::cuda
