// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// CUTLASS 2.x device GEMMs: row-major a (m, k), column-major b (k, n), row-major d (m, n).
#pragma once

#include <cuda_runtime_api.h>

namespace cutlass_gemm {

// d = a b, SIMT in float.
cudaError_t simt(int m, int n, int k, const float* a, const float* b, float* d, cudaStream_t stream);

// d = relu(a b + bias), TF32 tensor cores with a three-stage pipeline; bias has n elements.
// k and n must be multiples of 4.
cudaError_t tf32_bias_relu(int m, int n, int k, const float* a, const float* b, const float* bias, float* d,
                           cudaStream_t stream);

}  // namespace cutlass_gemm
