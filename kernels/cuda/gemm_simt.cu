// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// FP32 products on the CUDA cores: every architecture, exact.
#include "gemm.cuh"

namespace pwdice::cuda {
namespace {

// 64 x 64 keeps 1024 x 256 layers at 64 blocks; chosen for that, not measured on a device.
struct Simt {
  using OperatorClass = cutlass::arch::OpClassSimt;
  using ArchTag = cutlass::arch::Sm50;
  using Block = cutlass::gemm::GemmShape<64, 64, 8>;
  using Warp = cutlass::gemm::GemmShape<32, 32, 8>;
  using Instruction = cutlass::gemm::GemmShape<1, 1, 1>;
  static constexpr int kStages = 2;
  static constexpr auto kPastEdges = cutlass::gemm::SharedMemoryClearOption::kNone;  // zeros, from registers
};

}  // namespace

int cutlass_gemm_simt(const Launch& on, const Gemm& product, int slices) {
  return cutlass_gemm<Simt>(on, product, slices);
}

}  // namespace pwdice::cuda
