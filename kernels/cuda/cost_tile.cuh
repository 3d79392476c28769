// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Streamed tiles of pair costs, for views of any width, stride and alignment: the FP32 layout of
// pair_tile.cuh with the width taken in chunks of 32. Out of range is loaded as zero, so a narrow or odd
// width costs nothing but time.

#include "../pairwise_cost.h"
#include "pair_tile.cuh"

namespace pwdice::cuda {

// One side of the pairs. Pointers may be null: offset 0; weight: the consumer's neutral weight.
struct PairSide {
  Mat<const float> points;  // (rows, d)
  const float* offset;      // (rows): added to the value of each pair
  const float* length;      // (rows): |point|, for Cosine only
  const float* weight;      // (rows): of the streamed side, for the consumer
};

// value_ij = (offset_i + offset_j - beta dist_ij) inv_eps
struct PairSweep {
  PairSide owner, streamed;
  Distance distance;
  float beta, inv_eps;
};

struct CostTile {
  static constexpr int kRows = 128, kCols = Fp32Lane::kCols, kThreads = 256, kDepth = 32,
                       kStride = kDepth + 4;
  static constexpr int kOwnerElements = kRows * kStride, kTileElements = kCols * kStride;
  static constexpr size_t kSharedBytes = 2 * (kOwnerElements + kTileElements) * sizeof(float);
  static_assert(kSharedBytes <= 48 << 10, "no more than every device gives unasked");
  static_assert(kRows == kThreads / 64 * Fp32Lane::kWarpRows);
};

// Chunk `chunk` of kTileRows rows from `first` on: a warp loads 32 neighbouring components of one row.
template <int kTileRows>
__device__ __forceinline__ void load_chunk(float* shared, Mat<const float> points, int64_t first, int chunk) {
  constexpr int kWarps = CostTile::kThreads / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t k = chunk * CostTile::kDepth + lane;
#pragma unroll 4
  for (int r = warp; r < kTileRows; r += kWarps) {
    const bool inside = first + r < points.rows && k < points.cols;
    copy4(shared + r * CostTile::kStride + lane, inside ? &points(first + r, k) : points.data, inside);
  }
}

__device__ __forceinline__ void add_distance_terms(Distance distance, const float* owner, const float* tile,
                                                   Fp32Lane at, float (&s)[4][4]) {
  constexpr int kDepth = CostTile::kDepth, kStride = CostTile::kStride;
  switch (distance) {
    case Distance::SquaredEuclidean:
    case Distance::Euclidean:
      return add_terms<kDepth>(owner, tile, kStride, at, s,
                               [](float a, float b, float sum) { return fmaf(a - b, a - b, sum); });
    case Distance::Manhattan:
    case Distance::ExpManhattan:
      return add_terms<kDepth>(owner, tile, kStride, at, s,
                               [](float a, float b, float sum) { return sum + fabsf(a - b); });
    case Distance::Cosine:
      return add_terms<kDepth>(owner, tile, kStride, at, s,
                               [](float a, float b, float sum) { return fmaf(a, b, sum); });
    case Distance::Indicator:
      return add_terms<kDepth>(owner, tile, kStride, at, s,
                               [](float a, float b, float sum) { return a == b ? sum : sum + fabsf(a - b); });
  }
}

// The distance from the sum of its terms.
__device__ __forceinline__ float finish_distance(Distance distance, float sum, float length_product) {
  switch (distance) {
    case Distance::Euclidean:
      return sqrtf(sum);
    case Distance::ExpManhattan:
      return expm1f(sum);
    case Distance::Cosine:
      return 1.f - sum / fmaxf(length_product, 1e-6f);
    case Distance::Indicator:
      return sum > 0.f ? 1.f : sum;  // NaN stays NaN
    default:
      return sum;
  }
}

// Walks the tiles of a block's rows. consume(first_column, value) gets this thread's 4 x 4 values of each
// tile, rows first_row + at.row(i), columns first_column + at.col(j); columns past the end carry no meaning.
template <class Consume>
__device__ __forceinline__ void sweep_tiles(const PairSweep& sweep, int64_t first_row, int64_t begin,
                                            int64_t end, float* shared, Consume consume) {
  const Fp32Lane at;
  const int chunks = static_cast<int>((sweep.owner.points.cols + CostTile::kDepth - 1) / CostTile::kDepth);
  float* owners = shared;
  float* tiles = shared + 2 * CostTile::kOwnerElements;
  const int64_t steps = (end - begin) * chunks;
  // Step t is chunk t % chunks of tile begin + t / chunks; with one chunk the owner's rows are loaded once.
  const auto load = [&](int64_t t) {
    const int chunk = static_cast<int>(t % chunks), buffer = static_cast<int>(t % 2);
    if (chunks > 1 || t == 0) {
      load_chunk<CostTile::kRows>(owners + (chunks > 1 ? buffer : 0) * CostTile::kOwnerElements,
                                  sweep.owner.points, first_row, chunk);
    }
    load_chunk<CostTile::kCols>(tiles + buffer * CostTile::kTileElements, sweep.streamed.points,
                                (begin + t / chunks) * CostTile::kCols, chunk);
  };
  float row_offset[4], row_length[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t row = first_row + at.row(i);
    const bool inside = row < sweep.owner.points.rows;
    row_offset[i] = inside && sweep.owner.offset != nullptr ? sweep.owner.offset[row] : 0.f;
    row_length[i] = inside && sweep.owner.length != nullptr ? sweep.owner.length[row] : 0.f;
  }
  float s[4][4];
  if (steps > 0) load(0);
  for (int64_t t = 0; t < steps; ++t) {
    wait_for_copies();
    __syncthreads();
    if (t + 1 < steps) load(t + 1);
    if (t % chunks == 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[i][0] = s[i][1] = s[i][2] = s[i][3] = 0.f;
    }
    add_distance_terms(sweep.distance, owners + (chunks > 1 ? t % 2 : 0) * CostTile::kOwnerElements,
                       tiles + t % 2 * CostTile::kTileElements, at, s);
    if (t % chunks < chunks - 1) continue;
    const int64_t first_column = (begin + t / chunks) * CostTile::kCols;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t col = first_column + at.col(j);
      const bool inside = col < sweep.streamed.points.rows;
      const float offset = inside && sweep.streamed.offset != nullptr ? sweep.streamed.offset[col] : 0.f;
      const float length = inside && sweep.streamed.length != nullptr ? sweep.streamed.length[col] : 0.f;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float distance = finish_distance(sweep.distance, s[i][j], row_length[i] * length);
        s[i][j] = (row_offset[i] + offset - sweep.beta * distance) * sweep.inv_eps;
      }
    }
    consume(first_column, s);
  }
}

}  // namespace pwdice::cuda
