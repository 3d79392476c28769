// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Folds in a fixed order: lanes of a warp by halving distances, warps in order, blocks in order. The order
// depends on the shape alone and nothing is atomic, so the same data gives the same bits every run.
//
// A fold is a monoid: Part is what threads and blocks hold, Total what the blocks' parts are merged in.

#include "../lse.h"
#include "launch.cuh"

namespace pwdice::cuda {

struct SumFold {
  using Part = float;
  using Total = double;  // a million chunks must not lose the last one
  __device__ static Part empty() { return 0.f; }
  template <class T>
  __device__ static T join(T a, T b) {
    return a + b;
  }
};

struct LseFold {
  using Part = Lse;
  using Total = Lse;
  __device__ static Part empty() { return {}; }
  __device__ static Part join(Part a, Part b) { return a + b; }
};

struct MaxFold {  // NaN if any item is
  using Part = float;
  using Total = float;
  __device__ static Part empty() { return -INFINITY; }
  __device__ static Part join(Part a, Part b) { return a != a || a > b ? a : b; }
};

template <class T>
__device__ __forceinline__ T shuffle_xor(T v, int mask) {
  return __shfl_xor_sync(0xffffffffu, v, mask);
}
__device__ __forceinline__ Lse shuffle_xor(Lse v, int mask) {
  return {__shfl_xor_sync(0xffffffffu, v.m, mask), __shfl_xor_sync(0xffffffffu, v.z, mask)};
}

// The fold over the 32 lanes, in every lane. Commutative up to the sign of zero, so all lanes agree.
template <class Fold, class T>
__device__ __forceinline__ T warp_fold(T v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) v = Fold::join(v, shuffle_xor(v, mask));
  return v;
}

// The fold over a block, in thread 0. May be called again after a __syncthreads().
template <class Fold, int kThreads, class T>
__device__ __forceinline__ T block_fold(T v) {
  static_assert(kThreads % 32 == 0 && kThreads <= 1024);
  constexpr int kWarps = kThreads / 32;
  __shared__ T warps[kWarps];
  v = warp_fold<Fold>(v);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kWarps; ++w) v = Fold::join(v, warps[w]);
  }
  return v;
}

// A device-wide fold: chunks by block, then one block over the chunks' parts.
struct Chunk {
  static constexpr int kThreads = 256, kItems = 32, kSize = kThreads * kItems;
  static_assert(kSize == kReduceChunk && kSize == kBceChunk && kSize >= kPolicyRows,
                "the ops' <op>_scratch_bytes() count such chunks");
};

// This block's chunk of [0, n), folded; the result is in thread 0.
template <class Fold, class Load>
__device__ __forceinline__ typename Fold::Part fold_chunk(int64_t n, Load load) {
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * Chunk::kSize + threadIdx.x;
  typename Fold::Part part = Fold::empty();
  for (int k = 0; k < Chunk::kItems; ++k) {
    const int64_t i = begin + k * Chunk::kThreads;
    if (i >= n) break;
    part = Fold::join(part, load(i));
  }
  return block_fold<Fold, Chunk::kThreads>(part);
}

template <class Fold, class Load>
__global__ void __launch_bounds__(Chunk::kThreads)
    fold_chunks_kernel(int64_t n, Load load, typename Fold::Part* parts) {
  const typename Fold::Part part = fold_chunk<Fold>(n, load);
  if (threadIdx.x == 0) parts[blockIdx.x] = part;
}

template <class Fold, class Finish>
__global__ void __launch_bounds__(Chunk::kThreads)
    fold_parts_kernel(int64_t count, const typename Fold::Part* parts, Finish finish) {
  using Total = typename Fold::Total;
  Total total = Fold::empty();
  for (int64_t i = threadIdx.x; i < count; i += Chunk::kThreads) total = Fold::join(total, Total(parts[i]));
  total = block_fold<Fold, Chunk::kThreads>(total);
  if (threadIdx.x == 0) finish(total);
}

// What fits one chunk needs one launch and no scratch.
template <class Fold, class Load, class Finish>
__global__ void __launch_bounds__(Chunk::kThreads)
    fold_one_chunk_kernel(int64_t n, Load load, Finish finish) {
  const typename Fold::Part part = fold_chunk<Fold>(n, load);
  if (threadIdx.x == 0) finish(typename Fold::Total(part));
}

// Any n in one block and without scratch, for vectors that are short in practice.
template <class Fold, class Load, class Finish>
__global__ void __launch_bounds__(Chunk::kThreads)
    fold_in_one_block_kernel(int64_t n, Load load, Finish finish) {
  using Total = typename Fold::Total;
  Total total = Fold::empty();
  for (int64_t i = threadIdx.x; i < n; i += Chunk::kThreads) total = Fold::join(total, Total(load(i)));
  total = block_fold<Fold, Chunk::kThreads>(total);
  if (threadIdx.x == 0) finish(total);
}

inline int64_t chunk_count(int64_t n) { return ceil_div(n, Chunk::kSize); }

// finish(the fold of load(i) over i in [0, n)) runs once, on the device.
template <class Fold, class Load, class Finish>
void fold(const Launch& on, int64_t n, Load load, Finish finish) {
  if (n <= Chunk::kSize) {
    fold_one_chunk_kernel<Fold><<<1, Chunk::kThreads, 0, on.stream()>>>(n, load, finish);
    on.check();
    return;
  }
  const ScratchScope scope(on.ctx().scratch());
  using Part = typename Fold::Part;
  Part* parts = on.scratch<Part>(chunk_count(n));
  fold_chunks_kernel<Fold><<<on.grid(n, Chunk::kSize), Chunk::kThreads, 0, on.stream()>>>(n, load, parts);
  on.check();
  fold_parts_kernel<Fold><<<1, Chunk::kThreads, 0, on.stream()>>>(chunk_count(n), parts, finish);
  on.check();
}

template <class Fold, class Load, class Finish>
void fold_in_one_block(const Launch& on, int64_t n, Load load, Finish finish) {
  fold_in_one_block_kernel<Fold><<<1, Chunk::kThreads, 0, on.stream()>>>(n, load, finish);
  on.check();
}

}  // namespace pwdice::cuda
