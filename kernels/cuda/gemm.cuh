// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// One CUTLASS 2.x GEMM per pair of operand layouts; alignment 1, so that 11 or 3 columns and views that start
// anywhere work. The epilogue is chosen at run time: it is a small part of the work, and a quarter of the
// instantiations saves most of the build time.

#include <cutlass/gemm/kernel/default_gemm_universal.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>

#include "gemm.h"
#include "math.cuh"

namespace pwdice::cuda {

// The functor CUTLASS calls on every element of the result, in place of its LinearCombination.
class LayerEpilogue {
 public:
  using ElementOutput = float;
  using ElementAccumulator = float;
  using ElementCompute = float;
  using ElementScalar = float;
  static int const kCount = 1;
  static bool const kIsHeavy = true;  // tanh: do not unroll over the whole accumulator
  using FragmentOutput = cutlass::Array<float, kCount>;
  using FragmentAccumulator = cutlass::Array<float, kCount>;
  using FragmentSource = cutlass::Array<float, kCount>;

  struct Params {
    float alpha = 1.f;
    Epilogue epilogue = Epilogue::Store;
    Activation act = Activation::None;
  };

  CUTLASS_HOST_DEVICE explicit LayerEpilogue(const Params& params) : params_(params) {}
  CUTLASS_HOST_DEVICE bool is_source_needed() const { return params_.epilogue != Epilogue::Store; }
  CUTLASS_HOST_DEVICE void set_k_partition(int, int) {}

  CUTLASS_DEVICE FragmentOutput operator()(const FragmentAccumulator& product,
                                           const FragmentSource& source) const {
    FragmentOutput result;
    const float value = params_.alpha * product[0];
    switch (params_.epilogue) {
      case Epilogue::Activate:
        result[0] = activate(params_.act, value + source[0]);
        break;
      case Epilogue::Differentiate:
        result[0] = through(params_.act, source[0], value);
        break;
      default:
        result[0] = value + source[0];
    }
    return result;
  }
  CUTLASS_DEVICE FragmentOutput operator()(const FragmentAccumulator& product) const {
    FragmentOutput result;
    result[0] = params_.alpha * product[0];
    return result;
  }

 private:
  Params params_;
};

// Arithmetic: OperatorClass, ArchTag, the shapes, the stages, and what is put into shared memory past an
// edge.
template <class Arithmetic, class LayoutA, class LayoutB>
using GemmKernel = typename cutlass::gemm::kernel::DefaultGemmUniversal<
    float, LayoutA, cutlass::ComplexTransform::kNone, 1, float, LayoutB, cutlass::ComplexTransform::kNone, 1,
    float, cutlass::layout::RowMajor, float, typename Arithmetic::OperatorClass, typename Arithmetic::ArchTag,
    typename Arithmetic::Block, typename Arithmetic::Warp, typename Arithmetic::Instruction, LayerEpilogue,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, Arithmetic::kStages,
    cutlass::arch::OpMultiplyAdd, Arithmetic::kPastEdges>::GemmKernel;

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreadCount) gemm_kernel(typename Kernel::Params params) {
  extern __shared__ int memory[];
  Kernel kernel;
  kernel(params, *reinterpret_cast<typename Kernel::SharedStorage*>(memory));
}

template <class Kernel>
int launch_gemm(const Launch& on, const Gemm& p, int slices) {
  const auto extent = [&](int64_t value) {
    PWDICE_CHECK(value < (int64_t{1} << 31), "{}: a product of {} x {} x {} is too large", on.op(), p.m, p.n,
                 p.k);
    return static_cast<int>(value);
  };
  typename Kernel::Arguments arguments(cutlass::gemm::GemmUniversalMode::kGemmSplitKParallel,
                                       {extent(p.m), extent(p.n), extent(p.k)}, slices,
                                       {p.alpha, p.epilogue, p.act}, p.a, p.b, p.source, p.c, 0, 0, 0,
                                       p.m * p.n, p.lda, p.ldb, p.source_stride, p.ldc);
  const typename Kernel::Params params(arguments, 1, 1);
  constexpr size_t kShared = sizeof(typename Kernel::SharedStorage);
  static_assert(kShared <= 48 << 10, "more would have to be asked for");
  gemm_kernel<Kernel><<<params.get_grid_dims(), Kernel::kThreadCount, kShared, on.stream()>>>(params);
  on.check();
  return params.grid_tiled_shape.k();
}

template <class Arithmetic>
int cutlass_gemm(const Launch& on, const Gemm& p, int slices) {
  using Row = cutlass::layout::RowMajor;
  using Column = cutlass::layout::ColumnMajor;  // a transposed row-major operand is a column-major one
  if (p.transpose_a) return launch_gemm<GemmKernel<Arithmetic, Column, Row>>(on, p, slices);
  return p.transpose_b ? launch_gemm<GemmKernel<Arithmetic, Row, Column>>(on, p, slices)
                       : launch_gemm<GemmKernel<Arithmetic, Row, Row>>(on, p, slices);
}

}  // namespace pwdice::cuda
