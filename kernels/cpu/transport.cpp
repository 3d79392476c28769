// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Transport over all pairs: loss and both gradients in one sweep of an n x m matrix that is never stored.
//
// joint, with s_ij = (a_i + R_i + b_j - beta dist_ij)/eps + log q_j and Z = sum_ij exp(s_ij):
//   L = eps (log Z - log n)     d_a_i = sum_j p_ij     d_b_j = sum_i p_ij     p_ij = exp(s_ij)/Z
//
// chi2, with t_ij = y_ij + 1 (exact: its positive part), y as s without log q, and w_j = q_j/n:
//   L = eps sum_ij w_j (t_ij^2/2 [- 1/2 exact])     d_a_i = sum_j w_j t_ij     d_b_j = w_j sum_i t_ij
//
// Work     Owners of a PairGrid keep the row and column sums of their rectangle, merged in owner order.
// Numerics Tiles of joint hold s in units of log 2, so that exp is a power of two. Sums are relative to a
//          running maximum m of the owner: a tile whose maximum exceeds m by more than kHeadroom raises m and
//          rescales what has been summed. So 2^(s - m) stays below 2^24, and only pairs with p < e^-87 are
//          lost, however small eps is. q_j = 0 is s = -inf: the column vanishes. Sums within a block of rows
//          are float, sums over blocks double.
// Cost     n m (2 d flop + 1 exp); reads m d floats per block of rows, n d for every 1024 columns. Scratch: m d floats, 32 m doubles, and n
//          doubles for every 1024 columns.

#include <cmath>

#include "../backends.h"

// foreach_target.h includes this file once per target and must come before everything else of Highway.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/transport.cpp"
#include "hwy/foreach_target.h"
#include "pair_sweep-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr float kHeadroom = 24.f;  // in units of log 2, like the tiles

// Row and column sums of all owners.
struct PairSums {
  int64_t n, stride, blocks;  // stride: padded m
  double* row_sums;           // (col_sections, n)
  double* col_sums;           // (row_sections, stride)
  float* block_max;           // (col_sections, blocks): what a block's row sums are relative to
  float* owner_max;           // (owners)
  double* owner_sum;          // (owners): chi2's loss

  PairSums(Scratch& scratch, const char* op, const PairGrid& grid, const PairColumns& columns)
      : n(grid.n), stride(columns.padded), blocks(chunk_count(grid.n, PairBlock::kRows)) {
    row_sums = scratch.take<double>(grid.col_sections * n, op);
    col_sums = scratch.take<double>(grid.row_sections * stride, op);
    block_max = scratch.take<float>(grid.col_sections * blocks, op);
    owner_max = scratch.take<float>(grid.owners(), op);
    owner_sum = scratch.take<double>(grid.owners(), op);
  }
};

// row_sums[r] and col_sums[c] += 2^(s - m), two rows and two vectors of columns at a time.
HWY_NOINLINE void add_exp(const float* tile, int64_t rows, int64_t cols, float max, float* row_sums,
                          double* col_sums) {
  const FloatTag d;
  const Floats m = hn::Set(d, max);
  for (int64_t c = 0; c < cols; c += Tile::kCols) {
    Floats col0 = hn::Zero(d), col1 = hn::Zero(d);
    const auto add_row = [&](int64_t r) HWY_ATTR {
      const float* s = tile + r * PairBlock::kCols + c;
      const Floats e0 = exp2_nonpositive(d, hn::Sub(hn::Load(d, s), m));
      const Floats e1 = exp2_nonpositive(d, hn::Sub(hn::Load(d, s + kLanes), m));
      col0 = hn::Add(col0, e0);
      col1 = hn::Add(col1, e1);
      float* sum = row_sums + r * kLanes;
      hn::Store(hn::Add(hn::Load(d, sum), hn::Add(e0, e1)), d, sum);
    };
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2) add_row(r), add_row(r + 1);
    if (r < rows) add_row(r);
    add_to(col_sums + c, col0, col1);
  }
}

class JointOwner {
 public:
  JointOwner(const PairGrid& grid, const PairSums& sums, int64_t owner)
      : grid_(grid),
        sums_(sums),
        owner_(owner),
        cols_(grid.cols(owner)),
        col_sums_(sums.col_sums + owner / grid.col_sections * sums.stride) {
    const int64_t end = std::min(sums.stride, cols_.begin + PairGrid::kSectionCols);
    std::fill(col_sums_ + cols_.begin, col_sums_ + end, 0.0);
  }

  void begin(Range) { std::fill_n(row_sums_, PairBlock::kRows * kLanes, 0.f); }

  void tile(const float* tile, int64_t rows, int64_t col, int64_t cols) {
    const float top = tile_max(tile, rows, cols);
    if (top > max_ + kHeadroom) raise(top);
    // Without a maximum yet all is -inf, which adds 0, or NaN, which must arrive.
    add_exp(tile, rows, cols, max_ == -INFINITY ? 0.f : max_, row_sums_, col_sums_ + col);
  }

  void end(Range rows) {
    const int64_t section = owner_ % grid_.col_sections;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      sums_.row_sums[section * grid_.n + i] = sum_lanes(row_sums_ + (i - rows.begin) * kLanes);
    }
    sums_.block_max[section * sums_.blocks + rows.begin / PairBlock::kRows] = max_;
  }

  void finish() { sums_.owner_max[owner_] = max_; }

 private:
  void raise(float top) {
    if (max_ != -INFINITY) {
      const double scale = std::exp2(static_cast<double>(max_) - static_cast<double>(top));
      const int64_t end = std::min(sums_.stride, cols_.begin + PairGrid::kSectionCols);
      for (int64_t j = cols_.begin; j < end; ++j) col_sums_[j] *= scale;
      for (float& sum : row_sums_) sum *= static_cast<float>(scale);
    }
    max_ = top;
  }

  const PairGrid& grid_;
  const PairSums& sums_;
  int64_t owner_;
  Range cols_;
  double* col_sums_;
  float max_ = -INFINITY;
  HWY_ALIGN float row_sums_[PairBlock::kRows * kLanes];
};

// 2^(part - max); an empty part and an empty whole give 0, not NaN.
double weight(float part, float max) {
  return part == -INFINITY ? 0.0 : std::exp2(static_cast<double>(part) - static_cast<double>(max));
}

void merge_joint(const PairGrid& grid, const PairSums& sums, const TransportJoint& op) {
  float max = -INFINITY;
  for (int64_t o = 0; o < grid.owners(); ++o) max = std::max(max, sums.owner_max[o]);
  double total = 0;
  for (int64_t section = 0; section < grid.col_sections; ++section) {
    double* const rows = sums.row_sums + section * grid.n;
    for (int64_t b = 0; b < sums.blocks; ++b) {
      const double scale = weight(sums.block_max[section * sums.blocks + b], max);
      const Range range = chunk_range(grid.n, PairBlock::kRows, b);
      for (int64_t i = range.begin; i < range.end; ++i) total += rows[i] *= scale;
    }
  }
  const double mean = std::log(total) - std::log(static_cast<double>(grid.n));
  op.loss[0] = static_cast<float>(static_cast<double>(op.eps) * (static_cast<double>(max) * kLn2 + mean));
  const double inv = 1 / total;
  for (int64_t i = 0; i < grid.n; ++i) {
    double sum = 0;
    for (int64_t section = 0; section < grid.col_sections; ++section)
      sum += sums.row_sums[section * grid.n + i];
    op.d_a[i] = static_cast<float>(sum * inv);
  }
  for (int64_t section = 0; section < grid.row_sections; ++section) {
    for (int64_t c = 0; c < grid.col_sections; ++c) {
      const double scale = weight(sums.owner_max[section * grid.col_sections + c], max) * inv;
      const Range cols = chunk_range(grid.m, PairGrid::kSectionCols, c);
      double* const first = sums.col_sums;  // the first section's memory holds the total
      const double* const from = sums.col_sums + section * sums.stride;
      for (int64_t j = cols.begin; j < cols.end; ++j)
        first[j] = (section == 0 ? 0 : first[j]) + from[j] * scale;
    }
  }
  for (int64_t j = 0; j < grid.m; ++j) op.d_b[j] = static_cast<float>(sums.col_sums[j]);
}

void joint(Context& ctx, const TransportJoint& op) {
  const char* name = "transport_joint";
  const ScratchScope scope(ctx.scratch());
  const double unit = kLog2e / static_cast<double>(op.eps);
  const auto k = static_cast<float>(static_cast<double>(op.cost.beta) * unit);
  const auto constant = [&](int64_t j) {
    return static_cast<float>(static_cast<double>(op.b[j]) * unit + std::log2(static_cast<double>(op.q[j])));
  };
  const PairColumns columns =
      pack_columns(ctx, name, op.cost.distance, k, op.cost.y, -INFINITY, constant, op.q);
  const PairGrid grid(op.cost.x.rows, op.cost.y.rows, PairBlock::kRows);
  const PairSums sums(ctx.scratch(), name, grid, columns);
  sweep_pairs(ctx, name, grid, columns, op.cost.x, Potential{op.a.data, op.cost.reward.data, unit},
              [&](int64_t owner) { return JointOwner(grid, sums, owner); });
  merge_joint(grid, sums, op);
}

// -- chi2 ------------------------------------------------------------------------------------------------

class Chi2Owner {
 public:
  Chi2Owner(const PairGrid& grid, const PairSums& sums, int64_t owner, const float* w, bool exact)
      : grid_(grid),
        sums_(sums),
        owner_(owner),
        w_(w),
        low_(exact ? 0.f : -INFINITY),
        col_sums_(sums.col_sums + owner / grid.col_sections * sums.stride) {
    const int64_t begin = grid.cols(owner).begin, end = std::min(sums.stride, begin + PairGrid::kSectionCols);
    std::fill(col_sums_ + begin, col_sums_ + end, 0.0);
  }

  void begin(Range) {
    std::fill_n(row_sums_, PairBlock::kRows * kLanes, 0.f);
    std::fill_n(squares_, kLanes, 0.f);
  }

  void tile(const float* tile, int64_t rows, int64_t col, int64_t cols) {
    const FloatTag d;
    Floats squares = hn::Load(d, squares_);
    for (int64_t c = 0; c < cols; c += Tile::kCols) {
      const Floats w0 = hn::LoadU(d, w_ + col + c), w1 = hn::LoadU(d, w_ + col + c + kLanes);
      const auto used0 = hn::Ne(w0, hn::Zero(d)), used1 = hn::Ne(w1, hn::Zero(d));
      Floats col0 = hn::Zero(d), col1 = hn::Zero(d);
      for (int64_t r = 0; r < rows; ++r) {
        const float* s = tile + r * PairBlock::kCols + c;
        const Floats t0 = hn::IfThenElseZero(used0, math::at_least(d, low_, hn::Load(d, s))),
                     t1 = hn::IfThenElseZero(used1, math::at_least(d, low_, hn::Load(d, s + kLanes)));
        const Floats wt0 = hn::Mul(w0, t0), wt1 = hn::Mul(w1, t1);
        col0 = hn::Add(col0, t0);
        col1 = hn::Add(col1, t1);
        float* sum = row_sums_ + r * kLanes;
        hn::Store(hn::Add(hn::Load(d, sum), hn::Add(wt0, wt1)), d, sum);
        squares = hn::MulAdd(wt0, t0, hn::MulAdd(wt1, t1, squares));
      }
      add_to(col_sums_ + col + c, col0, col1);
    }
    hn::Store(squares, d, squares_);
  }

  void end(Range rows) {
    double* const to = sums_.row_sums + owner_ % grid_.col_sections * grid_.n;
    for (int64_t i = rows.begin; i < rows.end; ++i) to[i] = sum_lanes(row_sums_ + (i - rows.begin) * kLanes);
    total_ += sum_lanes(squares_);
  }

  void finish() { sums_.owner_sum[owner_] = total_; }

 private:
  const PairGrid& grid_;
  const PairSums& sums_;
  int64_t owner_;
  const float* w_;
  float low_;
  double* col_sums_;
  double total_ = 0;
  HWY_ALIGN float row_sums_[PairBlock::kRows * kLanes];
  HWY_ALIGN float squares_[kLanes];
};

void merge_chi2(const PairGrid& grid, const PairSums& sums, const TransportChi2& op, const float* w) {
  double total = 0;
  for (int64_t o = 0; o < grid.owners(); ++o) total += sums.owner_sum[o];
  total *= 0.5;
  if (op.divergence == Divergence::Chi2Exact) {
    double mass = 0;
    for (int64_t j = 0; j < grid.m; ++j) mass += static_cast<double>(op.q[j]);
    total -= 0.5 * mass;
  }
  op.loss[0] = static_cast<float>(static_cast<double>(op.eps) * total);
  for (int64_t i = 0; i < grid.n; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < grid.col_sections; ++c) sum += sums.row_sums[c * grid.n + i];
    op.d_a[i] = static_cast<float>(sum);
  }
  for (int64_t j = 0; j < grid.m; ++j) {
    double sum = 0;
    for (int64_t s = 0; s < grid.row_sections; ++s) sum += sums.col_sums[s * sums.stride + j];
    op.d_b[j] = static_cast<float>(sum * static_cast<double>(w[j]));
  }
}

void chi2(Context& ctx, const TransportChi2& op) {
  const char* name = "transport_chi2";
  const ScratchScope scope(ctx.scratch());
  const double inv_eps = 1 / static_cast<double>(op.eps);
  const auto k = static_cast<float>(static_cast<double>(op.cost.beta) * inv_eps);
  // The tiles carry t = y + 1. Columns past the end have weight 0, which drops them: their points are the
  // origin, and t overflows where that is far.
  const auto constant = [&](int64_t j) {
    return static_cast<float>(static_cast<double>(op.b[j]) * inv_eps + 1.0);
  };
  const PairColumns columns = pack_columns(ctx, name, op.cost.distance, k, op.cost.y, 0.f, constant, op.q);
  const PairGrid grid(op.cost.x.rows, op.cost.y.rows, PairBlock::kRows);
  const PairSums sums(ctx.scratch(), name, grid, columns);
  float* w = ctx.scratch().take<float>(columns.padded, name);
  for (int64_t j = 0; j < columns.padded; ++j) {
    w[j] = j < grid.m ? static_cast<float>(static_cast<double>(op.q[j]) / static_cast<double>(grid.n)) : 0.f;
  }
  const bool exact = op.divergence == Divergence::Chi2Exact;
  sweep_pairs(ctx, name, grid, columns, op.cost.x, Potential{op.a.data, op.cost.reward.data, inv_eps},
              [&](int64_t owner) { return Chi2Owner(grid, sums, owner, w, exact); });
  merge_chi2(grid, sums, op, w);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {
HWY_EXPORT(joint);
HWY_EXPORT(chi2);

void transport_joint(Context& ctx, const TransportJoint& op) { HWY_DYNAMIC_DISPATCH(joint)(ctx, op); }
void transport_chi2(Context& ctx, const TransportChi2& op) { HWY_DYNAMIC_DISPATCH(chi2)(ctx, op); }

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
