// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// One InfoNCE sweep for any engine; instantiated per arithmetic by infonce_sweep_<precision>.cu, so that the
// three compile side by side.
//   s_ij = <u_i, z2_j>      lse_i = log sum_j exp s_ij      p_ij = exp(s_ij - lse_i)
// Both leave out the diagonal: 1 - p_ii and the loss of a pair that is told apart well are then sums over the
// others, not what a cancellation leaves of them.
// Work     block (x, y) owns kRows rows and streams the columns of split y in tiles of kCols. Swapping the
//          roles of u and z2 turns the row sums into column sums, so every output has one owner: no atomics,
//          the same bits every run, scores recomputed once per direction.
// Numerics columns past n are -inf before the maximum is taken, never after; rows and columns past n get lse
//          +inf in the apply sweep, so their probabilities vanish.
// Cost     lse: n^2 d FMA + n^2 exp; apply: twice the FMA. Loads (n / kRows + splits) n d elements, stores
//          O(n d).

#include <cstddef>

#include "infonce_sweep.h"

namespace pwdice::cuda {

template <class Engine>
struct Range {
  int begin, end;  // tiles of this block's split
  __device__ Range(int64_t n) {
    const int tiles = static_cast<int>((n + Engine::kCols - 1) / Engine::kCols);
    const int per_split = (tiles + static_cast<int>(gridDim.y) - 1) / static_cast<int>(gridDim.y);
    begin = min(static_cast<int>(blockIdx.y) * per_split, tiles);
    end = min(begin + per_split, tiles);
  }
};

// Where a tile meets the diagonal of the score matrix: at row == col + shift.
template <class Engine>
struct Diagonal {
  int shift;
  bool inside;
  __device__ Diagonal(int first_column, int64_t first_row)
      : shift(first_column - static_cast<int>(first_row)),
        inside(shift > -Engine::kCols && shift < Engine::kRows) {}
  __device__ bool has(int row, int col) const { return row == col + shift; }
};

// Calls body(i, j) for the scores a thread holds. Few tiles meet the diagonal or the last column: a branch
// around this costs the others nothing.
template <class Engine, class Body>
__device__ __forceinline__ void for_each_score(Body body) {
#pragma unroll
  for (int i = 0; i < Engine::kHeldRows; ++i) {
#pragma unroll
    for (int j = 0; j < Engine::kHeldCols; ++j) body(i, j);
  }
}

template <class Engine>
__global__ void __launch_bounds__(Engine::kThreads, 1)  // 1: ptxas need not spill for a third block
    infonce_lse_kernel(const typename Engine::Element* u, const typename Engine::Element* z2, int64_t n,
                       int64_t padded, Lse* parts, float* diagonal) {
  extern __shared__ float4 memory[];
  Engine engine(memory);
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * Engine::kRows;
  const Range<Engine> range(n);
  engine.load_owner(u + first_row * Engine::kWidth);
  TileStream<Engine> stream(engine.tiles(), nullptr, {z2, nullptr, 0}, range.begin, range.end);
  Lse part[Engine::kHeldRows];
  while (stream.next()) {
    float s[Engine::kHeldRows][Engine::kHeldCols];
    engine.score(stream.tile(), s);
    const Diagonal<Engine> own(stream.first_column(), first_row);
    if (own.inside) {
      for_each_score<Engine>([&](int i, int j) {
        if (!own.has(engine.row(i), engine.col(j))) return;
        diagonal[first_row + engine.row(i)] = s[i][j];
        s[i][j] = -INFINITY;
      });
    }
    if (const int columns = static_cast<int>(n) - stream.first_column(); columns < Engine::kCols) {
      for_each_score<Engine>([&](int i, int j) {
        if (engine.col(j) >= columns) s[i][j] = -INFINITY;
      });
    }
#pragma unroll
    for (int i = 0; i < Engine::kHeldRows; ++i) {
      Lse tile;
#pragma unroll
      for (int j = 0; j < Engine::kHeldCols; ++j) tile.m = fmaxf(tile.m, s[i][j]);
      const float largest = fmaxf(part[i].m, tile.m);
      const float shift = largest == -INFINITY ? 0.f : largest;
#pragma unroll
      for (int j = 0; j < Engine::kHeldCols; ++j) tile.z += Engine::exponential(s[i][j] - shift);
      part[i] = {largest, part[i].z * Engine::exponential(part[i].m - shift) + tile.z};
    }
    stream.release();
  }
  engine.merge(part);
  if (!engine.holds_rows()) return;
#pragma unroll
  for (int i = 0; i < Engine::kHeldRows; ++i) {
    parts[blockIdx.y * padded + first_row + engine.row(i)] = part[i];
  }
}

// by_rows: lse belongs to the owner's rows (sums over j); else to the streamed ones (sums over i).
template <class Engine>
__global__ void __launch_bounds__(Engine::kThreads)
    infonce_apply_kernel(const typename Engine::Element* owner, const typename Engine::Element* streamed,
                         int64_t n, int64_t padded, const float* lse, bool by_rows, float* parts) {
  extern __shared__ float4 memory[];
  Engine engine(memory);
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * Engine::kRows;
  const Range<Engine> range(n);
  engine.load_owner(owner + first_row * Engine::kWidth);
  float* values = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(memory) + Engine::kSharedBytes);
  TileStream<Engine> stream(engine.tiles(), values, {streamed, by_rows ? nullptr : lse, static_cast<int>(n)},
                            range.begin, range.end);
  float row_lse[Engine::kHeldRows];
#pragma unroll
  for (int i = 0; i < Engine::kHeldRows; ++i) {
    const int64_t row = first_row + engine.row(i);
    row_lse[i] = row >= n ? INFINITY : by_rows ? lse[row] : 0.f;
  }
  typename Engine::Accumulator acc;
  while (stream.next()) {
    float p[Engine::kHeldRows][Engine::kHeldCols];
    engine.score(stream.tile(), p);
    const Diagonal<Engine> own(stream.first_column(), first_row);
#pragma unroll
    for (int j = 0; j < Engine::kHeldCols; ++j) {
      const int64_t col = stream.first_column() + engine.col(j);
      const float col_lse = col >= n ? INFINITY : by_rows ? 0.f : stream.value(engine.col(j));
#pragma unroll
      for (int i = 0; i < Engine::kHeldRows; ++i) {
        p[i][j] = Engine::exponential(p[i][j] - (row_lse[i] + col_lse));  // one of the two is 0 or infinite
      }
    }
    if (own.inside) {
      for_each_score<Engine>([&](int i, int j) {
        if (own.has(engine.row(i), engine.col(j))) p[i][j] = 0.f;
      });
    }
    engine.apply(stream.tile(), p, acc);
    stream.release();
  }
  engine.store(acc, parts + (static_cast<int64_t>(blockIdx.y) * padded + first_row) * Engine::kWidth);
}

template <class Engine>
dim3 sweep_grid(int64_t n) {
  const int64_t row_blocks = padded_rows(n) / Engine::kRows;
  return dim3(static_cast<unsigned>(row_blocks), static_cast<unsigned>(sweep_splits(row_blocks)));
}

template <class Engine>
int launch_lse(const Launch& on, const SweepOperands& in, Lse* parts, float* diagonal) {
  using T = typename Engine::Element;
  const dim3 grid = sweep_grid<Engine>(in.n);
  on.allow_shared(infonce_lse_kernel<Engine>, Engine::kSharedBytes);
  infonce_lse_kernel<Engine><<<grid, Engine::kThreads, Engine::kSharedBytes, on.stream()>>>(
      static_cast<const T*>(in.u), static_cast<const T*>(in.z2), in.n, padded_rows(in.n), parts, diagonal);
  on.check();
  return static_cast<int>(grid.y);
}

template <class Engine>
int launch_apply(const Launch& on, const SweepOperands& in, Sweep direction, const float* lse, float* parts) {
  using T = typename Engine::Element;
  const bool rows = direction == Sweep::Rows;
  const dim3 grid = sweep_grid<Engine>(in.n);
  constexpr size_t kShared = Engine::kSharedBytes + TileStream<Engine>::kValueBytes;
  on.allow_shared(infonce_apply_kernel<Engine>, kShared);
  infonce_apply_kernel<Engine><<<grid, Engine::kThreads, kShared, on.stream()>>>(
      static_cast<const T*>(rows ? in.u : in.z2), static_cast<const T*>(rows ? in.z2 : in.u), in.n,
      padded_rows(in.n), lse, rows, parts);
  on.check();
  return static_cast<int>(grid.y);
}

// The engine of a width.
template <template <int> class Tile, class Call>
int with_width(int width, Call call) {
  switch (width) {
    case 32:
      return call.template operator()<Tile<32>>();
    case 64:
      return call.template operator()<Tile<64>>();
    default:
      return call.template operator()<Tile<128>>();
  }
}

template <template <int> class Tile>
int Sweeps<Tile>::lse(const Launch& on, const SweepOperands& in, Lse* parts, float* diagonal) {
  return with_width<Tile>(in.width,
                          [&]<class Engine>() { return launch_lse<Engine>(on, in, parts, diagonal); });
}

template <template <int> class Tile>
int Sweeps<Tile>::apply(const Launch& on, const SweepOperands& in, Sweep direction, const float* lse,
                        float* parts) {
  return with_width<Tile>(
      in.width, [&]<class Engine>() { return launch_apply<Engine>(on, in, direction, lse, parts); });
}

}  // namespace pwdice::cuda
