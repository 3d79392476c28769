// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Streamed tiles of s_ij = <owner_i, streamed_j>: how the scores are made, not what is done with them.
//
// A block owns kRows rows of one matrix and streams the other past them in tiles of kCols rows. Both are
// (rows, D), contiguous, padded with zeros to D in {32, 64, 128} and to a multiple of kPadRows rows, so a
// tile is one contiguous piece of memory: 16-byte loads, no bounds. An engine is one kind of arithmetic
// (Fp32Tile here, Tf32Tile and Bf16Tile in pair_tile_mma.cuh). A thread of it holds kHeldRows x kHeldCols
// scores of a tile:
//   score(tile)        s[i][j] = <owner row(i), tile row col(j)>
//   apply(tile, p)     acc += p tile, over the columns of the tile: the second product of a backward sweep
//   merge(part)        the fold of a row's parts over the threads that hold its columns
//
// Shared-memory rows are padded by 16 bytes, which makes every access of the loops below free of bank
// conflicts: eight rows one after the other then start in eight different groups of four banks.

#include <cstdint>

#include "reduce.cuh"

namespace pwdice::cuda {

constexpr int kPadRows = 128;
inline int64_t padded_rows(int64_t n) { return ceil_div(n, kPadRows) * kPadRows; }
inline int padded_width(int64_t d) { return d <= 32 ? 32 : d <= 64 ? 64 : 128; }

// 16 bytes from global to shared memory: asynchronously from compute capability 8.0 on.
__device__ __forceinline__ void copy16(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
#else
  *static_cast<uint4*>(shared) = *static_cast<const uint4*>(global);
#endif
}

// 4 bytes, or zero when not `inside`; `global` must be a valid address all the same.
__device__ __forceinline__ void copy4(float* shared, const float* global, bool inside) {
#if __CUDA_ARCH__ >= 800
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = inside ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
#else
  *shared = inside ? *global : 0.f;
#endif
}

// All copies this thread began are in shared memory; others see them after the next barrier.
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// A vector in one store. Left alone the compiler may split it, and each part then moves whole sectors.
__device__ __forceinline__ void store_vector(float* global, float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(global), "f"(v.x), "f"(v.y), "f"(v.z),
               "f"(v.w)
               : "memory");
}
__device__ __forceinline__ void store_vector(float* global, float2 v) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(global), "f"(v.x), "f"(v.y) : "memory");
}

// Rows of a (kTileRows, D) tile, kStride elements apart in shared memory. Eight lanes write together: one row
// of at least 128 bytes, or the same vector of eight shorter rows, whose padding keeps them in different
// banks.
template <int kTileRows, int D, int kStride, int kThreads, class T>
__device__ __forceinline__ void load_tile(T* shared, const T* global) {
  constexpr int kVector = 16 / sizeof(T), kPerRow = D / kVector, kVectors = kTileRows * kPerRow;
  static_assert(kVectors % 32 == 0, "whole warps load");
  static_assert(kStride % kVector == 0, "rows start at 16-byte addresses");
#pragma unroll
  for (int k = 0; k * kThreads < kVectors; ++k) {
    const int v = k * kThreads + static_cast<int>(threadIdx.x);
    if (v >= kVectors) break;
    const int row = kPerRow >= 8 ? v / kPerRow : v / 32 * (32 / kPerRow) + v % (32 / kPerRow);
    const int at = kPerRow >= 8 ? v % kPerRow : v % 32 / (32 / kPerRow);
    copy16(shared + row * kStride + at * kVector, global + static_cast<int64_t>(row) * D + at * kVector);
  }
}

// The tiles [begin, end) of a matrix, one after the other, the next one on its way while one is in use. With
// each tile comes one value per row of it (null: none), 0 past n.
template <class Engine>
class TileStream {
 public:
  using T = typename Engine::Element;
  static constexpr size_t kValueBytes = Engine::kStages * Engine::kCols * sizeof(float);

  struct Source {
    const T* matrix;
    const float* values;
    int n;
  };
  __device__ TileStream(T* buffers, float* value_buffers, const Source& source, int begin, int end)
      : buffers_(buffers), value_buffers_(value_buffers), source_(source), at_(begin), end_(end) {
    if (begin < end) load(begin);
  }

  // False after the last tile. A barrier: what threads wrote to shared memory before is visible after.
  __device__ bool next() {
    wait_for_copies();
    __syncthreads();
    if (at_ >= end_) return false;
    tile_ = at_++;
    if (Engine::kStages == 2 && at_ < end_) load(at_);
    return true;
  }
  __device__ const T* tile() const { return buffers_ + stage(tile_) * Engine::kTileElements; }
  __device__ float value(int col) const { return value_buffers_[stage(tile_) * Engine::kCols + col]; }
  __device__ int first_column() const { return tile_ * Engine::kCols; }

  // Ends the use of the tile; with one buffer the next one can only be loaded now.
  __device__ void release() {
    if (Engine::kStages == 1) {
      __syncthreads();
      if (at_ < end_) load(at_);
    }
  }

 private:
  __device__ static int stage(int tile) { return Engine::kStages == 2 ? tile % 2 : 0; }
  __device__ void load(int tile) {
    load_tile<Engine::kCols, Engine::kWidth, Engine::kStride, Engine::kThreads>(
        buffers_ + stage(tile) * Engine::kTileElements,
        source_.matrix + static_cast<int64_t>(tile) * Engine::kCols * Engine::kWidth);
    if (source_.values != nullptr && threadIdx.x < Engine::kCols) {
      const int col = tile * Engine::kCols + static_cast<int>(threadIdx.x);
      const bool inside = col < source_.n;
      copy4(value_buffers_ + stage(tile) * Engine::kCols + threadIdx.x, source_.values + (inside ? col : 0),
            inside);
    }
  }

  T* buffers_;
  float* value_buffers_;
  Source source_;
  int at_, end_, tile_ = 0;
};

// Where a thread of an FP32 tile stands: a warp holds 32 x 16 scores, a lane every eighth row of four and
// every fourth column of four, so that a quarter warp reads eight neighbouring rows (no conflict) and one
// column.
struct Fp32Lane {
  static constexpr int kHeldRows = 4, kHeldCols = 4, kWarpRows = 32, kWarpCols = 16, kCols = 32;
  static constexpr int kColWarps = kCols / kWarpCols;

  int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  __device__ int row(int i) const { return warp / kColWarps * kWarpRows + lane % 8 + 8 * i; }
  __device__ int col(int j) const { return warp % kColWarps * kWarpCols + lane / 8 + 4 * j; }
};

// s[i][j] = term(a, b, s[i][j]) for the kDepth components of owner row(i) and streamed row col(j).
template <int kDepth, class Term>
__device__ __forceinline__ void add_terms(const float* owner, const float* tile, int stride, Fp32Lane at,
                                          float (&s)[4][4], Term term) {
#pragma unroll 4
  for (int k = 0; k < kDepth; k += 4) {
    float4 a[4], b[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = *reinterpret_cast<const float4*>(owner + at.row(i) * stride + k);
#pragma unroll
    for (int j = 0; j < 4; ++j) b[j] = *reinterpret_cast<const float4*>(tile + at.col(j) * stride + k);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        s[i][j] = term(a[i].x, b[j].x, s[i][j]);
        s[i][j] = term(a[i].y, b[j].y, s[i][j]);
        s[i][j] = term(a[i].z, b[j].z, s[i][j]);
        s[i][j] = term(a[i].w, b[j].w, s[i][j]);
      }
    }
  }
}

// A row's parts, held by the four lanes and two warps that share its columns, folded in that order. The
// result is in the threads for which holds_rows() is true. `shared` has room for kRows parts; ends with a
// barrier.
template <class Fold, int kRows, class Part>
__device__ __forceinline__ void merge_rows(Fp32Lane at, Part (&part)[4], Part* shared) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    part[i] = Fold::join(part[i], shuffle_xor(part[i], 8));
    part[i] = Fold::join(part[i], shuffle_xor(part[i], 16));
    if (at.warp % Fp32Lane::kColWarps == 1 && at.lane < 8) shared[at.row(i)] = part[i];
  }
  __syncthreads();
  if (at.warp % Fp32Lane::kColWarps == 0 && at.lane < 8) {
#pragma unroll
    for (int i = 0; i < 4; ++i) part[i] = Fold::join(part[i], shared[at.row(i)]);
  }
  __syncthreads();
}

template <int D>
class Fp32Tile {
 public:
  using Element = float;
  static constexpr int kWidth = D, kStride = D + 4, kCols = Fp32Lane::kCols;
  static constexpr int kRows = D == 32 ? 128 : 64, kThreads = 2 * kRows;
  static constexpr int kHeldRows = 4, kHeldCols = 4, kHeldDepth = D / 32;
  static constexpr int kStages = D <= 64 ? 2 : 1;
  static constexpr int kTileElements = kCols * kStride, kProbabilityStride = kCols + 4;
  // owner rows | tiles | probabilities of one tile, or the parts of a merge
  static constexpr size_t kSharedBytes =
      sizeof(float) * (kRows * kStride + kStages * kTileElements + kRows * kProbabilityStride);
  static_assert(kSharedBytes + kStages * kCols * sizeof(float) <= 64 << 10,
                "compute capability 7.5 has no more");
  static_assert(kPadRows % kRows == 0 && kRows % Fp32Lane::kWarpRows == 0);
  static_assert(sizeof(Lse) * kRows <= sizeof(float) * kRows * kProbabilityStride);

  __device__ explicit Fp32Tile(void* shared) : owner_(static_cast<float*>(shared)) {}
  __device__ float* tiles() const { return owner_ + kRows * kStride; }
  __device__ int row(int i) const { return at_.row(i); }
  __device__ int col(int j) const { return at_.col(j); }
  // Natural exponential, 2 ulp: FP32 is the exact mode.
  __device__ static float exponential(float x) { return expf(x); }

  __device__ void load_owner(const float* rows) { load_tile<kRows, D, kStride, kThreads>(owner_, rows); }

  __device__ void score(const float* tile, float (&s)[4][4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) s[i][j] = 0.f;
    }
    add_terms<D>(owner_, tile, kStride, at_, s, [](float a, float b, float sum) { return fmaf(a, b, sum); });
  }

  // A thread's part of the (kRows, D) result: rows row(i), columns depth(q) to depth(q) + 3.
  struct Accumulator {
    float4 v[kHeldRows][kHeldDepth] = {};
  };
  __device__ int depth(int q) const {
    return at_.warp % Fp32Lane::kColWarps * (D / 2) + 16 * q + at_.lane / 8 * 4;
  }

  __device__ void apply(const float* tile, const float (&p)[4][4], Accumulator& acc) const {
    float* probabilities = tiles() + kStages * kTileElements;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) probabilities[row(i) * kProbabilityStride + col(j)] = p[i][j];
    }
    __syncthreads();
#pragma unroll 2
    for (int c = 0; c < kCols; c += 4) {
      float4 weight[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        weight[i] = *reinterpret_cast<const float4*>(probabilities + row(i) * kProbabilityStride + c);
      }
#pragma unroll
      for (int q = 0; q < kHeldDepth; ++q) {
        const float* at = tile + c * kStride + depth(q);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float4 b = *reinterpret_cast<const float4*>(at + e * kStride);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float w = e == 0 ? weight[i].x : e == 1 ? weight[i].y : e == 2 ? weight[i].z : weight[i].w;
            float4& v = acc.v[i][q];
            v.x = fmaf(w, b.x, v.x), v.y = fmaf(w, b.y, v.y), v.z = fmaf(w, b.z, v.z),
            v.w = fmaf(w, b.w, v.w);
          }
        }
      }
    }
  }

  // The block's rows of a (rows, D) matrix.
  __device__ void store(const Accumulator& acc, float* rows) const {
#pragma unroll
    for (int i = 0; i < kHeldRows; ++i) {
#pragma unroll
      for (int q = 0; q < kHeldDepth; ++q) {
        store_vector(rows + row(i) * D + depth(q), acc.v[i][q]);
      }
    }
  }

  __device__ void merge(Lse (&part)[4]) const {
    merge_rows<LseFold, kRows>(at_, part, reinterpret_cast<Lse*>(tiles() + kStages * kTileElements));
  }
  __device__ bool holds_rows() const { return at_.warp % Fp32Lane::kColWarps == 0 && at_.lane < 8; }

 private:
  Fp32Lane at_;
  float* owner_;
};

}  // namespace pwdice::cuda
