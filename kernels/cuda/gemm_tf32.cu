// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// TF32 products on the tensor cores of compute capability 8.0 and later: inputs rounded to 10 bits of
// mantissa, sums in FP32. Only when ContextOptions::score_precision asks for tensor cores.
#include "gemm.cuh"

namespace pwdice::cuda {
namespace {

// Three stages of cp.async: 24 KiB of shared memory, so that several blocks fit on every architecture.
struct Tf32 {
  using OperatorClass = cutlass::arch::OpClassTensorOp;
  using ArchTag = cutlass::arch::Sm80;
  using Block = cutlass::gemm::GemmShape<64, 64, 16>;
  using Warp = cutlass::gemm::GemmShape<32, 32, 16>;
  using Instruction = cutlass::gemm::GemmShape<16, 8, 8>;
  static constexpr int kStages = 3;
  // Without it, products past an edge, which are never stored, would read shared memory nobody wrote.
  static constexpr auto kPastEdges = cutlass::gemm::SharedMemoryClearOption::kZfill;
};

}  // namespace

int cutlass_gemm_tf32(const Launch& on, const Gemm& product, int slices) {
  return cutlass_gemm<Tf32>(on, product, slices);
}

}  // namespace pwdice::cuda
