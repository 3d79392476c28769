// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// A logsumexp down every column: transport with the expert potential eliminated (transport_semidual.cpp), and what the
// exact value of both all-pairs losses is made of.
//
//   s_ij = (a_i + R_i - beta dist_ij)/eps     lse_j = log sum_i exp(s_ij)/n
//
// Streams the rows once and keeps a running (maximum, sum) per column, lane by lane: n may be the whole data set.
// Cost        n m (2 d flop + 1 exp); reads m d floats from L2 for every 24 or 28 rows, x once for every 1024 columns.
//             Scratch m d floats + 32 m (maximum, sum) pairs.
// Work        owners by shape; partial sums merged in owner order.
// Numerics    tiles in units of log 2; running maxima; sums over a block float, over blocks double.

#include <cmath>

#include "../backends.h"
#include "divergence_plan.h"

// foreach_target.h includes this file once per target and must come before everything else of Highway.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/transport_columns.cpp"
#include "hwy/foreach_target.h"
#include "pair_sweep-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

// max[c] and sum[c] of `cols` columns take in a tile.
HWY_NOINLINE void fold_columns(const float* tile, int64_t rows, int64_t cols, float* max, double* sum) {
  const FloatTag d;
  const Floats none = hn::Set(d, -INFINITY);
  for (int64_t c = 0; c < cols; c += Tile::kCols) {
    const Floats old0 = hn::LoadU(d, max + c), old1 = hn::LoadU(d, max + c + kLanes);
    Floats top0 = old0, top1 = old1;
    for (int64_t r = 0; r < rows; ++r) {
      const float* s = tile + r * PairBlock::kCols + c;
      top0 = hn::Max(top0, hn::Load(d, s));
      top1 = hn::Max(top1, hn::Load(d, s + kLanes));
    }
    hn::StoreU(top0, d, max + c);
    hn::StoreU(top1, d, max + c + kLanes);
    top0 = hn::IfThenZeroElse(hn::Eq(top0, none), top0);  // a column of -inf: -inf - -inf would be NaN
    top1 = hn::IfThenZeroElse(hn::Eq(top1, none), top1);
    Floats part0 = hn::Zero(d), part1 = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) {
      const float* s = tile + r * PairBlock::kCols + c;
      part0 = hn::Add(part0, exp2_nonpositive(d, hn::Sub(hn::Load(d, s), top0)));
      part1 = hn::Add(part1, exp2_nonpositive(d, hn::Sub(hn::Load(d, s + kLanes), top1)));
    }
    HWY_ALIGN float part[Tile::kCols], scale[Tile::kCols];
    hn::Store(part0, d, part);
    hn::Store(part1, d, part + kLanes);
    hn::Store(exp2_nonpositive(d, hn::Sub(old0, top0)), d, scale);
    hn::Store(exp2_nonpositive(d, hn::Sub(old1, top1)), d, scale + kLanes);
    for (int64_t i = 0; i < Tile::kCols; ++i) {
      sum[c + i] = sum[c + i] * static_cast<double>(scale[i]) + static_cast<double>(part[i]);
    }
  }
}

class ColumnOwner {
 public:
  ColumnOwner(Range cols, float* max, double* sum) : max_(max), sum_(sum) {
    std::fill(max_ + cols.begin, max_ + cols.end, -INFINITY);
    std::fill(sum_ + cols.begin, sum_ + cols.end, 0.0);
  }
  void begin(Range) {}
  void tile(const float* tile, int64_t rows, int64_t col, int64_t cols) {
    fold_columns(tile, rows, cols, max_ + col, sum_ + col);
  }
  void end(Range) {}
  void finish() {}

 private:
  float* max_;
  double* sum_;
};

void columns(Context& ctx, const ColumnLse& op) {
  const char* name = "column_lse";
  const ScratchScope scope(ctx.scratch());
  const double unit = kLog2e / static_cast<double>(op.eps);
  const auto k = static_cast<float>(static_cast<double>(op.cost.beta) * unit);
  const PairColumns packed =
      pack_columns(ctx, name, op.cost.distance, k, op.cost.y, -INFINITY, [](int64_t) { return 0.f; });
  const PairGrid grid(op.cost.x.rows, op.cost.y.rows, PairBlock::kRows);
  float* max = ctx.scratch().take<float>(grid.row_sections * packed.padded, name);
  double* sum = ctx.scratch().take<double>(grid.row_sections * packed.padded, name);
  sweep_pairs(ctx, name, grid, packed, op.cost.x, Potential{op.a.data, op.cost.reward.data, unit},
              [&](int64_t owner) {
                const int64_t at = owner / grid.col_sections * packed.padded, begin = grid.cols(owner).begin;
                const Range cols{begin, std::min(packed.padded, begin + PairGrid::kSectionCols)};
                return ColumnOwner(cols, max + at, sum + at);
              });
  for (int64_t j = 0; j < grid.m; ++j) {
    float top = -INFINITY;
    for (int64_t s = 0; s < grid.row_sections; ++s) top = std::max(top, max[s * packed.padded + j]);
    double total = 0;
    for (int64_t s = 0; s < grid.row_sections; ++s) {
      const int64_t at = s * packed.padded + j;
      if (max[at] == -INFINITY) {
        total += sum[at];  // 0, or NaN when a NaN came by
      } else {
        total += sum[at] * std::exp2(static_cast<double>(max[at]) - static_cast<double>(top));
      }
    }
    op.col_lse[j] = static_cast<float>(static_cast<double>(top) * kLn2 + std::log(total) -
                                       std::log(static_cast<double>(grid.n)));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {
HWY_EXPORT(columns);

void column_lse(Context& ctx, const ColumnLse& op) { HWY_DYNAMIC_DISPATCH(columns)(ctx, op); }

namespace {
size_t bytes_of(int64_t count, size_t size) { return Scratch::rounded(static_cast<size_t>(count) * size); }
}  // namespace

// Enough for fewer columns too, whose rows may be cut into more sections.
size_t column_lse_scratch_bytes(int threads, int64_t m, int64_t d) {
  int64_t partial = PairGrid::max_row_sections(m) * (m + kPairPadding);
  for (int64_t cols = PairGrid::kSectionCols; cols < m && cols <= PairGrid::kOwners * PairGrid::kSectionCols;
       cols += PairGrid::kSectionCols) {
    partial = std::max(partial, PairGrid::max_row_sections(cols) * (cols + kPairPadding));
  }
  return pair_columns_bytes(m, d) + static_cast<size_t>(threads) * pair_block_bytes(d) +
         bytes_of(partial, sizeof(double)) + bytes_of(partial, sizeof(float));
}

size_t transport_scratch_bytes(int threads, int64_t n, int64_t m, int64_t d) {
  const int64_t col_sections = chunk_count(m, PairGrid::kSectionCols);
  const size_t sums = bytes_of(col_sections * n, sizeof(double)) +
                      bytes_of(col_sections * (n / 6 + 1), sizeof(float)) +
                      bytes_of(m + kPairPadding, sizeof(float)) +
                      bytes_of(PairGrid::kOwners + col_sections, sizeof(double)) * 2;
  const size_t tiles = column_lse_scratch_bytes(threads, m, d) + sums + divergence_bytes(n);
  const int64_t k = std::min(n, kWholeColumns);  // states of a semidual in one sweep
  const int64_t block = chunk_count(k, kSemidualChunk) * semidual_chunk_floats(kPairMaxRows);
  const size_t whole = pair_columns_bytes(k, d) + static_cast<size_t>(threads) * pair_block_bytes(d, block) +
                       bytes_of(kSemidualSections * (k + kPairPadding), sizeof(double));
  return std::max(tiles, whole);
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
