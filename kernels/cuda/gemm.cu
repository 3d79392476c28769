// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Which library multiplies, in which arithmetic, and the sum over slices of k.
#include <algorithm>

#include "cublas.h"
#include "gemm.h"
#include "math.cuh"

namespace pwdice::cuda {
namespace {

struct Split {
  static constexpr int64_t kTile = 64;       // of the CUTLASS kernels
  static constexpr int64_t kBlocks = 128;    // about one per multiprocessor of an A100 or H100
  static constexpr int64_t kShortest = 256;  // a shorter slice would not pay for its store and load
};

// c (+)= sum of the slices, in order.
__global__ void __launch_bounds__(Each::kThreads) sum_slices_kernel(Gemm p, int slices, const float* parts) {
  for_each_element(p.m, p.n, [&](int64_t i, int64_t j) {
    float& c = p.c[i * p.ldc + j];
    float sum = parts[i * p.n + j];
    for (int s = 1; s < slices; ++s) sum += parts[(s * p.m + i) * p.n + j];
    c = p.epilogue == Epilogue::Add ? c + sum : sum;
  });
}

// What the CUTLASS kernels do in their epilogue, for a library that has none. product: (m, n), contiguous.
__global__ void __launch_bounds__(Each::kThreads) epilogue_kernel(Gemm p, const float* product) {
  for_each_element(p.m, p.n, [&](int64_t i, int64_t j) {
    float& c = p.c[i * p.ldc + j];
    const float value = product == nullptr ? 0.f : p.alpha * product[i * p.n + j];
    switch (p.epilogue) {
      case Epilogue::Activate:
        c = activate(p.act, value + p.source[i * p.source_stride + j]);
        break;
      case Epilogue::Differentiate:
        c = through(p.act, p.source[i * p.source_stride + j], value);
        break;
      case Epilogue::Add:
        c += value;
        break;
      case Epilogue::Store:
        c = value;
    }
  });
}

void multiply_cublas(const Launch& on, const Gemm& p, CuBlas& cublas, bool tf32) {
  const bool direct = p.epilogue == Epilogue::Store && p.alpha == 1.f;
  const ScratchScope scope(on.ctx().scratch());
  float* product = direct ? p.c : on.scratch<float>(p.m * p.n);
  cublas.multiply(
      {p.transpose_a, p.transpose_b, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, product, direct ? p.ldc : p.n},
      tf32, on.op());
  if (direct) return;
  epilogue_kernel<<<on.grid(p.m * p.n), Each::kThreads, 0, on.stream()>>>(p, product);
  on.check();
}

void multiply_cutlass(const Launch& on, const Gemm& p, bool tf32) {
  const auto cutlass = tf32 ? cutlass_gemm_tf32 : cutlass_gemm_simt;
  const bool sum = p.epilogue == Epilogue::Store || p.epilogue == Epilogue::Add;
  const int slices = sum ? gemm_slices(p.m, p.n, p.k) : 1;
  Gemm whole = p;
  if (p.epilogue == Epilogue::Add) whole.source = p.c, whole.source_stride = p.ldc;
  if (slices == 1) {
    cutlass(on, whole, 1);
    return;
  }
  const ScratchScope scope(on.ctx().scratch());
  float* parts = on.scratch<float>(slices * p.m * p.n);
  whole.c = parts, whole.ldc = p.n, whole.epilogue = Epilogue::Store;
  const int written = cutlass(on, whole, slices);
  sum_slices_kernel<<<on.grid(p.m * p.n), Each::kThreads, 0, on.stream()>>>(p, written, parts);
  on.check();
}

void multiply(const Launch& on, const Gemm& p, bool tf32) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {  // a product over nothing is zero; the libraries do not launch for it
    epilogue_kernel<<<on.grid(p.m * p.n), Each::kThreads, 0, on.stream()>>>(p, nullptr);
    on.check();
    return;
  }
  CuBlas* cublas = on.ctx().cuda().cublas.get();
  cublas != nullptr ? multiply_cublas(on, p, *cublas, tf32) : multiply_cutlass(on, p, tf32);
}

}  // namespace

int gemm_slices(int64_t m, int64_t n, int64_t k) {
  const int64_t tiles = std::max<int64_t>(1, ceil_div(m, Split::kTile) * ceil_div(n, Split::kTile));
  return static_cast<int>(std::max<int64_t>(1, std::min(Split::kBlocks / tiles, k / Split::kShortest)));
}

// Slices of a split product, or the one product that cuBLAS leaves to an epilogue kernel.
size_t gemm_scratch_bytes(int64_t m, int64_t n, int64_t k) {
  return Scratch::rounded(static_cast<size_t>(gemm_slices(m, n, k) * m * n) * sizeof(float));
}

void gemm(const Launch& on, const Gemm& product) {
  multiply(on, product, on.ctx().options().score_precision != ScorePrecision::Fp32);
}

void gemm_fp32(const Launch& on, const Gemm& product) { multiply(on, product, false); }

}  // namespace pwdice::cuda
