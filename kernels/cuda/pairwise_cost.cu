// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// c_ij = beta dist(x_i, y_j) - reward_i, stored: for inspection, and for pairs taken row by row.
// Work     matrix: tiles of cost_tile.cuh, a thread stores its 4 x 4 part; paired: one warp per pair.
// Numerics differences first, then squares or moduli: never negative, no cancellation. NaN stays with its state.
// Cost     matrix: 3 n m d flop (cosine 2), loads (n / 128) m d + splits n d floats (with d > 32 a block loads its own
//          rows again for every tile), stores n m. paired: 7 n d flop, loads 2 n d + n floats, stores n.
#include "cost_tile.cuh"
#include "pairwise_cost.cuh"
#include "row_norm.cuh"

namespace pwdice::cuda {
namespace {

__global__ void __launch_bounds__(CostTile::kThreads)
    cost_matrix_kernel(PairSweep sweep, int64_t tiles, Mat<float> c) {
  __shared__ __align__(16) float memory[CostTile::kSharedBytes / sizeof(float)];
  const Fp32Lane at;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * CostTile::kRows;
  const int64_t per_split = (tiles + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * per_split;
  sweep_tiles(sweep, first_row, min(begin, tiles), min(begin + per_split, tiles), memory,
              [&](int64_t first_column, const float(&value)[4][4]) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
#pragma unroll
                  for (int j = 0; j < 4; ++j) {
                    const int64_t row = first_row + at.row(i), col = first_column + at.col(j);
                    if (row < c.rows && col < c.cols) c(row, col) = -value[i][j];
                  }
                }
              });
}

__global__ void __launch_bounds__(RowPerWarp::kThreads)
    length_kernel(Mat<const float> points, float* length) {
  const int64_t i = RowPerWarp::row();
  if (i >= points.rows) return;
  float sum = 0.f;
  for (int64_t k = RowPerWarp::lane(); k < points.cols; k += 32) sum += points(i, k) * points(i, k);
  sum = warp_fold<SumFold>(sum);
  if (RowPerWarp::lane() == 0) length[i] = sqrtf(sum);
}

__device__ float distance_term(Distance distance, float a, float b) {
  switch (distance) {
    case Distance::SquaredEuclidean:
    case Distance::Euclidean:
      return (a - b) * (a - b);
    case Distance::Manhattan:
    case Distance::ExpManhattan:
      return fabsf(a - b);
    case Distance::Cosine:
      return a * b;
    case Distance::Indicator:
      return a == b ? 0.f : fabsf(a - b);  // an infinity equals itself
  }
  return 0.f;
}

__global__ void __launch_bounds__(RowPerWarp::kThreads) cost_paired_kernel(PairCost cost, float* c) {
  const int64_t i = RowPerWarp::row();
  if (i >= cost.x.rows) return;
  float sum = 0.f, x_square = 0.f, y_square = 0.f;
  for (int64_t k = RowPerWarp::lane(); k < cost.x.cols; k += 32) {
    const float x = cost.x(i, k), y = cost.y(i, k);
    sum += distance_term(cost.distance, x, y);
    x_square += x * x, y_square += y * y;
  }
  sum = warp_fold<SumFold>(sum);
  const float product = sqrtf(warp_fold<SumFold>(x_square)) * sqrtf(warp_fold<SumFold>(y_square));
  if (RowPerWarp::lane() == 0) {
    c[i] = cost.beta * finish_distance(cost.distance, sum, product) - cost.reward[i];
  }
}

}  // namespace

void launch_lengths(const Launch& on, Mat<const float> points, float* length) {
  if (points.rows == 0) return;
  length_kernel<<<on.grid(points.rows, RowPerWarp::kRows), RowPerWarp::kThreads, 0, on.stream()>>>(points,
                                                                                                   length);
  on.check();
}

void launch_paired_costs(const Launch& on, const PairCost& cost, float* c) {
  if (cost.x.rows == 0) return;
  cost_paired_kernel<<<on.grid(cost.x.rows, RowPerWarp::kRows), RowPerWarp::kThreads, 0, on.stream()>>>(cost,
                                                                                                        c);
  on.check();
}

void cost_matrix(Context& ctx, const CostMatrix& op) {
  if (op.c.size() == 0) return;
  const Launch on(ctx, "cost_matrix");
  const ScratchScope scope(ctx.scratch());
  const PairLengths lengths(on, op.cost);
  const PairSweep sweep{{op.cost.x, op.cost.reward.data, lengths.x, nullptr},
                        {op.cost.y, nullptr, lengths.y, nullptr},
                        op.cost.distance,
                        op.cost.beta,
                        1.f};
  const PairGrid grid(on, op.c.rows, op.c.cols);
  cost_matrix_kernel<<<grid.blocks, CostTile::kThreads, 0, on.stream()>>>(sweep, grid.tiles, op.c);
  on.check();
}

void cost_paired(Context& ctx, const CostPaired& op) {
  const Launch on(ctx, "cost_paired");
  launch_paired_costs(on, op.cost, op.c.data);
}

}  // namespace pwdice::cuda
