// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cutlass/epilogue/thread/linear_combination_relu.h>
#include <cutlass/gemm/device/gemm.h>

#include "cutlass_gemm.h"

namespace cutlass_gemm {
namespace {

using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;

using SimtGemm = cutlass::gemm::device::Gemm<float, RowMajor, float, ColumnMajor, float, RowMajor>;

using Tf32Gemm = cutlass::gemm::device::Gemm<
    float, RowMajor, float, ColumnMajor, float, RowMajor, float, cutlass::arch::OpClassTensorOp,
    cutlass::arch::Sm80, cutlass::gemm::GemmShape<128, 64, 32>, cutlass::gemm::GemmShape<64, 32, 32>,
    cutlass::gemm::GemmShape<16, 8, 8>,
    cutlass::epilogue::thread::LinearCombinationRelu<float, 4, float, float,
                                                     cutlass::epilogue::thread::ScaleType::NoBetaScaling>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 3>;

cudaError_t to_cuda(cutlass::Status status) {
  if (status == cutlass::Status::kSuccess) return cudaGetLastError();
  const cudaError_t error = cudaGetLastError();
  return error ? error : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t simt(int m, int n, int k, const float* a, const float* b, float* d, cudaStream_t stream) {
  SimtGemm gemm;
  return to_cuda(gemm({{m, n, k}, {a, k}, {b, k}, {d, n}, {d, n}, {1.0f, 0.0f}}, nullptr, stream));
}

cudaError_t tf32_bias_relu(int m, int n, int k, const float* a, const float* b, const float* bias, float* d,
                           cudaStream_t stream) {
  Tf32Gemm gemm;
  // A row stride of zero repeats the bias for every row.
  return to_cuda(gemm({{m, n, k}, {a, k}, {b, k}, {bias, 0}, {d, n}, {1.0f}}, nullptr, stream));
}

}  // namespace cutlass_gemm
