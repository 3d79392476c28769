// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "../activation.h"
#include "launch.cuh"

namespace pwdice::cuda {

// What happens to alpha times the product before it is stored.
enum class Epilogue {
  Store,
  Activate,       // f(product + source), source broadcast over rows: a layer's bias
  Differentiate,  // product * f'(source): the gradient before the activation that made source
  Add,            // product + what c held
};

// Row-major c (m, n) = epilogue(alpha op(a) op(b)), op(x) = x or x^T. Not both are transposed: nothing on a
// hot path is, and it would be a third more CUTLASS kernels to compile; matmul.cu turns one of them first.
struct Gemm {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  float alpha = 1.f;
  Epilogue epilogue = Epilogue::Store;
  Activation act = Activation::None;
  const float* source = nullptr;
  int64_t source_stride = 0;
};

// FP32 on the CUDA cores, or TF32 on the tensor cores when the Context asks for TF32 or BF16 scores. Products
// with few tiles and a long k are cut along k into slices that are summed in order: same bits every run.
void gemm(const Launch& on, const Gemm& product);
void gemm_fp32(const Launch& on, const Gemm& product);  // whatever the Context asks

// The slices of k and the scratch for them; a function of the shape alone.
int gemm_slices(int64_t m, int64_t n, int64_t k);
size_t gemm_scratch_bytes(int64_t m, int64_t n, int64_t k);

// The CUTLASS kernels, one file per kind of arithmetic. slices > 1: c is (slices, m, n), epilogue Store, and
// the number of slices actually written is returned.
int cutlass_gemm_simt(const Launch& on, const Gemm& product, int slices);
int cutlass_gemm_tf32(const Launch& on, const Gemm& product, int slices);

}  // namespace pwdice::cuda
