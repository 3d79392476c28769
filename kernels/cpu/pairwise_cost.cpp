// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// c_ij = beta dist(x_i, y_j) - reward_i, stored (cost_matrix) or for matching rows only (cost_paired).
//
// Work     cost_matrix: tiles of pair_tile-inl.h, copied out; cost_paired: chunks of rows.
// Numerics the direct forms of the distance: never negative, no cancellation. NaN reaches the costs of its state alone.
// Cost     matrix: 3 n m d flop (a difference, its square or modulus, a sum; cosine 2), m d floats from L2 for every
//          24 or 28 rows, x once for every 1024 columns, n m floats stored by way of a tile in L1.
//          paired: 3 n d flop, 2 n d + n floats read (cosine 6 n d, and twice the reading), n stored.

#include <cstring>

#include "../backends.h"

// foreach_target.h includes this file once per target and must come before everything else of Highway.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pairwise_cost.cpp"
#include "hwy/foreach_target.h"
#include "pair_sweep-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

class StoreOwner {
 public:
  explicit StoreOwner(Mat<float> c) : c_(c) {}
  void begin(Range rows) { first_ = rows.begin; }
  void tile(const float* tile, int64_t rows, int64_t col, int64_t cols) {
    const auto bytes = static_cast<size_t>(std::min(cols, c_.cols - col)) * sizeof(float);
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(c_.row(first_ + r) + col, tile + r * PairBlock::kCols, bytes);
  }
  void end(Range) {}
  void finish() {}

 private:
  Mat<float> c_;
  int64_t first_ = 0;
};

void matrix(Context& ctx, const CostMatrix& op) {
  const char* name = "cost_matrix";
  const ScratchScope scope(ctx.scratch());
  const PairColumns columns = pack_columns(
      ctx, name, op.cost.distance, -op.cost.beta, op.cost.y, 0.f, [](int64_t) { return 0.f; }, {},
      Squares::Direct);
  const PairGrid grid(op.c.rows, op.c.cols, PairBlock::kRows);
  sweep_pairs(
      ctx, name, grid, columns, op.cost.x, [&](int64_t i) { return -op.cost.reward[i]; },
      [&](int64_t) { return StoreOwner(op.c); });
}

template <Form kForm>
HWY_INLINE float fold_row(const float* x, const float* y, int64_t depth) {
  const FloatTag d;
  Floats sum = hn::Zero(d);
  for (int64_t k = 0; k < depth; k += kLanes) {
    const int64_t count = std::min(kLanes, depth - k);
    sum = fold<kForm>(load_part(x + k, count), load_part(y + k, count), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

float row_distance(Distance distance, const float* x, const float* y, int64_t depth) {
  switch (distance) {
    case Distance::SquaredEuclidean:
      return fold_row<Form::Square>(x, y, depth);
    case Distance::Euclidean:
      return std::sqrt(fold_row<Form::Square>(x, y, depth));
    case Distance::Manhattan:
      return fold_row<Form::Manhattan>(x, y, depth);
    case Distance::ExpManhattan:
      return std::exp(fold_row<Form::Manhattan>(x, y, depth)) - 1.f;
    case Distance::Cosine: {
      const float norms =
          std::sqrt(fold_row<Form::Dot>(x, x, depth)) * std::sqrt(fold_row<Form::Dot>(y, y, depth));
      return 1.f - fold_row<Form::Dot>(x, y, depth) / (norms < 1e-6f ? 1e-6f : norms);
    }
    case Distance::Indicator: {
      const float sum = fold_row<Form::Indicator>(x, y, depth);
      return sum > 0.f ? 1.f : sum;  // NaN stays NaN
    }
  }
  return 0.f;
}

void paired(Context& ctx, const CostPaired& op) {
  const PairCost& cost = op.cost;
  constexpr int64_t kChunk = 512;
  ctx.pool().parallel_for(chunk_count(op.c.size, kChunk), [&](int64_t chunk, int) HWY_ATTR {
    const Range rows = chunk_range(op.c.size, kChunk, chunk);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      op.c[i] =
          cost.beta * row_distance(cost.distance, cost.x.row(i), cost.y.row(i), cost.x.cols) - cost.reward[i];
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {
HWY_EXPORT(matrix);
HWY_EXPORT(paired);

void cost_matrix(Context& ctx, const CostMatrix& op) { HWY_DYNAMIC_DISPATCH(matrix)(ctx, op); }
void cost_paired(Context& ctx, const CostPaired& op) { HWY_DYNAMIC_DISPATCH(paired)(ctx, op); }

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
