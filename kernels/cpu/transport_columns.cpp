// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Transport with the expert potential eliminated: a logsumexp down every column.
//
//   s_ij = (a_i + R_i - beta dist_ij)/eps     lse_j = log sum_i exp(s_ij)/n     p_ij = exp(s_ij - lse_j)/n
//   L = eps sum_j q_j lse_j                   d_a_i = sum_j q_j p_ij
//
// column_lse  streams the rows once and keeps a running (maximum, sum) per column, lane by lane: n may be the
//             whole data set. n m (2 d flop + 1 exp); scratch m d floats + 32 m (maximum, sum) pairs.
// semidual    up to kWholeColumns rows: the roles are swapped, so that a block of expert states meets all n
//             states in one block of memory that stays in the cache: maximum, exp and sum of each, then the
//             weighted sums d_a. n m (2 d flop + 1 exp); scratch n d floats + a block per thread. Beyond
//             that: column_lse, then a second sweep for the row sums, twice the work.
// Bytes       column_lse reads m d floats from L2 for every 24 or 28 rows, x once for every 1024 columns. One sweep
//             reads n d floats for every block of expert states (24 or 28 up to n = 2300, then 256 KiB of values, never
//             less than a tile of rows) and passes over the values of a block four times. Two sweeps: column_lse twice.
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

// -- column_lse ------------------------------------------------------------------------------------------

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

// -- semidual in one sweep: a row of the block is an expert state, a column one of the n states -----------

struct WholeRows {
  int64_t block_rows, stride, section_rows, sections;

  // n columns, m rows. The block should fit half the L2 cache, a section has at least one block.
  WholeRows(int64_t n, int64_t m, int64_t padded) : stride(padded + 16) {
    const int64_t fit = (int64_t{1} << 18) / (stride * static_cast<int64_t>(sizeof(float)) * Tile::kRows);
    block_rows = Tile::kRows * std::clamp<int64_t>(fit, 1, PairBlock::kRows / Tile::kRows);
    const int64_t blocks = chunk_count(m, block_rows);
    const int64_t want = std::clamp<int64_t>(n * m / PairGrid::kPairsPerOwner, 1, kSemidualSections);
    section_rows = chunk_count(blocks, std::min(want, blocks)) * block_rows;
    sections = chunk_count(m, section_rows);
  }
};

// 2^(s - max s) in place; returns the maximum and the sum.
struct RowStats {
  float max;
  double sum;
};
HWY_NOINLINE RowStats exp_row(float* s, int64_t n) {
  const FloatTag d;
  Floats top0 = hn::Set(d, -INFINITY), top1 = top0;
  for (int64_t i = 0; i < n; i += Tile::kCols) {
    top0 = hn::Max(top0, hn::LoadU(d, s + i));
    top1 = hn::Max(top1, hn::LoadU(d, s + i + kLanes));
  }
  const float max = hn::GetLane(hn::MaxOfLanes(d, hn::Max(top0, top1)));
  const Floats shift = hn::Set(d, max == -INFINITY ? 0.f : max);
  Floats sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  for (int64_t i = 0; i < n; i += Tile::kCols) {
    const Floats e0 = exp2_nonpositive(d, hn::Sub(hn::LoadU(d, s + i), shift));
    const Floats e1 = exp2_nonpositive(d, hn::Sub(hn::LoadU(d, s + i + kLanes), shift));
    hn::StoreU(e0, d, s + i);
    hn::StoreU(e1, d, s + i + kLanes);
    sum0 = hn::Add(sum0, e0);
    sum1 = hn::Add(sum1, e1);
  }
  HWY_ALIGN float lanes[Tile::kCols];
  hn::Store(sum0, d, lanes);
  hn::Store(sum1, d, lanes + kLanes);
  return {max, sum_lanes(lanes) + sum_lanes(lanes + kLanes)};
}

// d_a[i] += sum_r w_r e_ri
HWY_NOINLINE void add_weighted(const float* e, int64_t stride, const float* w, int64_t rows, int64_t n,
                               double* d_a) {
  const FloatTag d;
  for (int64_t i = 0; i < n; i += Tile::kCols) {
    Floats sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) {
      const Floats w_r = hn::Set(d, w[r]);
      sum0 = hn::MulAdd(w_r, hn::LoadU(d, e + r * stride + i), sum0);
      sum1 = hn::MulAdd(w_r, hn::LoadU(d, e + r * stride + i + kLanes), sum1);
    }
    add_to(d_a + i, sum0, sum1);
  }
}

struct SemidualSweep {
  const TransportSemidual& op;
  const PairColumns& states;
  const WholeRows& shape;
  float *strips, *blocks;  // per thread
  double* d_a;             // (sections, padded)

  void section(int64_t index, int thread) const {
    const Range range = chunk_range(op.cost.y.rows, shape.section_rows, index);
    double* const sums = d_a + index * states.padded;
    std::fill_n(sums, states.padded, 0.0);
    PairRows rows;
    rows.strips = strips + thread * PairBlock::kRows * states.depth;
    float* const s = blocks + thread * shape.block_rows * shape.stride;
    const double log_n = std::log(static_cast<double>(op.cost.x.rows));
    for (int64_t j = range.begin; j < range.end; j += shape.block_rows) {
      const Range block{j, std::min(j + shape.block_rows, range.end)};
      pack_rows(
          states, op.cost.y, block, [](int64_t) { return 0.f; }, rows);
      score_block(states, rows, 0, states.padded, s, shape.stride);
      float w[PairBlock::kRows];
      for (int64_t r = 0; r < rows.count; ++r) {
        const RowStats stats = exp_row(s + r * shape.stride, states.padded);
        const auto q = static_cast<double>(op.q[j + r]);
        op.col_lse[j + r] =
            static_cast<float>(static_cast<double>(stats.max) * kLn2 + std::log(stats.sum) - log_n);
        w[r] = q == 0 ? 0.f : static_cast<float>(q / stats.sum);
        if (q == 0) std::fill_n(s + r * shape.stride, states.padded, 0.f);  // 0 times NaN would be NaN
      }
      add_weighted(s, shape.stride, w, rows.count, states.padded, sums);
    }
  }
};

void semidual_one_sweep(Context& ctx, const TransportSemidual& op) {
  const char* name = "transport_semidual";
  const ScratchScope scope(ctx.scratch());
  const double unit = kLog2e / static_cast<double>(op.eps);
  const auto k = static_cast<float>(static_cast<double>(op.cost.beta) * unit);
  const PairColumns states = pack_columns(ctx, name, op.cost.distance, k, op.cost.x, -INFINITY,
                                          Potential{op.a.data, op.cost.reward.data, unit});
  const WholeRows shape(op.cost.x.rows, op.cost.y.rows, states.padded);
  Scratch& scratch = ctx.scratch();
  const SemidualSweep sweep{op,
                            states,
                            shape,
                            scratch.take<float>(ctx.threads() * PairBlock::kRows * states.depth, name),
                            scratch.take<float>(ctx.threads() * shape.block_rows * shape.stride, name),
                            scratch.take<double>(shape.sections * states.padded, name)};
  ctx.pool().parallel_for(shape.sections,
                          [&](int64_t section, int thread) HWY_ATTR { sweep.section(section, thread); });
  for (int64_t i = 0; i < op.cost.x.rows; ++i) {
    double sum = 0;
    for (int64_t s = 0; s < shape.sections; ++s) sum += sweep.d_a[s * states.padded + i];
    op.d_a[i] = static_cast<float>(sum);
  }
}

// -- semidual in two sweeps ------------------------------------------------------------------------------

// Row sums of 2^s, where s is the logarithm of q_j p_ij itself.
class RowSumOwner {
 public:
  explicit RowSumOwner(double* sums) : sums_(sums) {}
  void begin(Range) { std::fill_n(row_sums_, PairBlock::kRows * kLanes, 0.f); }
  void tile(const float* tile, int64_t rows, int64_t, int64_t cols) {
    const FloatTag d;
    for (int64_t r = 0; r < rows; ++r) {
      Floats sum = hn::Load(d, row_sums_ + r * kLanes);
      for (int64_t c = 0; c < cols; c += kLanes) {
        sum = hn::Add(sum, exp2_nonpositive(d, hn::Load(d, tile + r * PairBlock::kCols + c)));
      }
      hn::Store(sum, d, row_sums_ + r * kLanes);
    }
  }
  void end(Range rows) {
    for (int64_t i = rows.begin; i < rows.end; ++i)
      sums_[i] = sum_lanes(row_sums_ + (i - rows.begin) * kLanes);
  }
  void finish() {}

 private:
  double* sums_;
  HWY_ALIGN float row_sums_[PairBlock::kRows * kLanes];
};

void semidual_two_sweeps(Context& ctx, const TransportSemidual& op) {
  const char* name = "transport_semidual";
  columns(ctx, {op.cost, op.a, op.eps, op.col_lse});
  const ScratchScope scope(ctx.scratch());
  const double unit = kLog2e / static_cast<double>(op.eps), n = static_cast<double>(op.cost.x.rows);
  const auto k = static_cast<float>(static_cast<double>(op.cost.beta) * unit);
  const auto constant = [&](int64_t j) {
    const double mass = std::log2(static_cast<double>(op.q[j]) / n);
    return static_cast<float>(mass - static_cast<double>(op.col_lse[j]) * kLog2e);
  };
  const PairColumns packed =
      pack_columns(ctx, name, op.cost.distance, k, op.cost.y, -INFINITY, constant, op.q);
  const PairGrid grid(op.cost.x.rows, op.cost.y.rows, PairBlock::kRows);
  double* sums = ctx.scratch().take<double>(grid.col_sections * grid.n, name);
  sweep_pairs(ctx, name, grid, packed, op.cost.x, Potential{op.a.data, op.cost.reward.data, unit},
              [&](int64_t owner) { return RowSumOwner(sums + owner % grid.col_sections * grid.n); });
  for (int64_t i = 0; i < grid.n; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < grid.col_sections; ++c) sum += sums[c * grid.n + i];
    op.d_a[i] = static_cast<float>(sum);
  }
}

void semidual(Context& ctx, const TransportSemidual& op) {
  op.cost.x.rows <= kWholeColumns ? semidual_one_sweep(ctx, op) : semidual_two_sweeps(ctx, op);
  double loss = 0;
  for (int64_t j = 0; j < op.q.size; ++j) {
    if (op.q[j] != 0.f) loss += static_cast<double>(op.q[j]) * static_cast<double>(op.col_lse[j]);
  }
  op.loss[0] = static_cast<float>(static_cast<double>(op.eps) * loss);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {
HWY_EXPORT(columns);
HWY_EXPORT(semidual);

void column_lse(Context& ctx, const ColumnLse& op) { HWY_DYNAMIC_DISPATCH(columns)(ctx, op); }
void transport_semidual(Context& ctx, const TransportSemidual& op) {
  HWY_DYNAMIC_DISPATCH(semidual)(ctx, op);
}

namespace {
size_t bytes_of(int64_t count, size_t size) { return Scratch::rounded(static_cast<size_t>(count) * size); }
}  // namespace

size_t column_lse_scratch_bytes(int threads, int64_t m, int64_t d) {
  const int64_t partial = PairGrid::max_row_sections(m) * (m + kPairPadding);
  return pair_columns_bytes(m, d) + static_cast<size_t>(threads) * pair_block_bytes(d, kPairMaxCols) +
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
  const size_t whole = pair_columns_bytes(k, d) +
                       static_cast<size_t>(threads) * pair_block_bytes(d, k + kPairPadding) +
                       bytes_of(kSemidualSections * (k + kPairPadding), sizeof(double));
  return std::max(tiles, whole);
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
