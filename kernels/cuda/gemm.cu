// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Which library multiplies, in which arithmetic, and the sum over slices of k.
#include "gemm.h"

#include <algorithm>

#include "cublas.h"
#include "math.cuh"

namespace pwdice::cuda {
namespace {

struct Split {
  static constexpr int64_t kTile = 64;       // of the CUTLASS kernels
  static constexpr int64_t kBlocks = 128;    // about one per multiprocessor of an A100 or H100
  static constexpr int64_t kShortest = 256;  // a shorter slice would not pay for its store and load
};

// c = sum of the slices, in order.
__global__ void __launch_bounds__(Each::kThreads)
    sum_slices_kernel(int slices, int64_t m, int64_t n, const float* parts, float* c, int64_t ldc) {
  for_each_element(m, n, [&](int64_t i, int64_t j) {
    float sum = parts[i * n + j];
    for (int s = 1; s < slices; ++s) sum += parts[(s * m + i) * n + j];
    c[i * ldc + j] = sum;
  });
}

// What the CUTLASS kernels do in their epilogue, for the library that has none.
__global__ void __launch_bounds__(Each::kThreads) epilogue_kernel(Gemm p) {
  for_each_element(p.m, p.n, [&](int64_t i, int64_t j) {
    float& c = p.c[i * p.ldc + j];
    const float product = p.alpha * c;
    if (p.epilogue == Epilogue::Store) {
      c = product;
    } else {
      const float source = p.source[i * p.source_stride + j];
      c = p.epilogue == Epilogue::Activate ? activate(p.act, product + source)
                                           : product * derivative(p.act, source);
    }
  });
}

// A product over nothing is zero; the libraries do not launch for it.
__global__ void __launch_bounds__(Each::kThreads) zero_kernel(Gemm p) {
  for_each_element(p.m, p.n, [&](int64_t i, int64_t j) { p.c[i * p.ldc + j] = 0.f; });
}

void multiply(const Launch& on, const Gemm& p, bool tf32) {
  if (p.m == 0 || p.n == 0) return;
  State& state = on.ctx().cuda();
  if (p.k == 0 || state.cublas) {
    if (p.k == 0) {
      zero_kernel<<<on.grid(p.m * p.n), Each::kThreads, 0, on.stream()>>>(p);
      on.check();
    } else {
      state.cublas->multiply({p.transpose_a, p.transpose_b, static_cast<int>(p.m), static_cast<int>(p.n),
                              static_cast<int>(p.k), p.a, p.lda, p.b, p.ldb, p.c, p.ldc},
                             tf32, on.op());
    }
    if (p.epilogue == Epilogue::Store && p.alpha == 1.f) return;
    epilogue_kernel<<<on.grid(p.m * p.n), Each::kThreads, 0, on.stream()>>>(p);
    on.check();
    return;
  }
  const auto cutlass = tf32 ? cutlass_gemm_tf32 : cutlass_gemm_simt;
  const int slices = p.epilogue == Epilogue::Store ? gemm_slices(p.m, p.n, p.k) : 1;
  if (slices == 1) {
    cutlass(on, p, 1);
    return;
  }
  const ScratchScope scope(on.ctx().scratch());
  Gemm parts = p;
  parts.c = on.scratch<float>(slices * p.m * p.n);
  parts.ldc = p.n;
  const int written = cutlass(on, parts, slices);
  sum_slices_kernel<<<on.grid(p.m * p.n), Each::kThreads, 0, on.stream()>>>(written, p.m, p.n, parts.c, p.c, p.ldc);
  on.check();
}

}  // namespace

int gemm_slices(int64_t m, int64_t n, int64_t k) {
  const int64_t tiles = std::max<int64_t>(1, ceil_div(m, Split::kTile) * ceil_div(n, Split::kTile));
  return static_cast<int>(std::max<int64_t>(1, std::min(Split::kBlocks / tiles, k / Split::kShortest)));
}

size_t gemm_scratch_bytes(int64_t m, int64_t n, int64_t k) {
  const int slices = gemm_slices(m, n, k);
  return slices == 1 ? 0 : Scratch::rounded(static_cast<size_t>(slices * m * n) * sizeof(float));
}

void gemm(const Launch& on, const Gemm& product) {
  multiply(on, product, on.ctx().options().score_precision != ScorePrecision::Fp32);
}

void gemm_fp32(const Launch& on, const Gemm& product) { multiply(on, product, false); }

}  // namespace pwdice::cuda
