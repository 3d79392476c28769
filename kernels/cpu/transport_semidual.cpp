// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Transport with the expert potential eliminated: a logsumexp down every column and its gradient.
//
//   s_ij = (a_i + R_i - beta dist_ij)/eps     lse_j = log sum_i exp(s_ij)/n     p_ij = exp(s_ij - lse_j)/n
//   L = eps sum_j q_j lse_j                   d_a_i = sum_j q_j p_ij
//
// one sweep   up to kWholeColumns states: the roles are swapped, so that a block of expert states meets all n states,
//             chunk after chunk, which become exponentials as they are made and are kept; then the weighted sums d_a.
//             n m (2 d flop + 1 exp); reads n d floats for every block of expert states (24 or 28 up to n = 2300, then
//             256 KiB of values, never less than a tile of rows) and the values of a block twice.
// two sweeps  beyond that: column_lse, then the sums of 2^(log q_j p_ij) over the rows; twice the work.
// Work        owners by shape; partial sums merged in owner order. Scratch n d floats, a block per thread, 16 n doubles.
// Numerics    tiles in units of log 2. One sweep: 2^(s - base) with a base per expert state that rises with its scores and
//             is at most kHeadroom below the largest; a chunk's weights make up for the base it was made with. Sums over a
//             block are float, over blocks double.

#include <cmath>
#include <limits>
#include <utility>

#include "../backends.h"

// foreach_target.h includes this file once per target and must come before everything else of Highway.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/transport_semidual.cpp"
#include "hwy/foreach_target.h"
#include "pair_sweep-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

// -- one sweep: a row of the block is an expert state, a column one of the n states ----------------------

// A block of rows against all columns, chunk after chunk of kSemidualChunk of them.
struct WholeRows {
  int64_t block_rows, chunks, section_rows, sections;

  // n columns, m rows. The block should fit half the L2 cache, a section has at least one block.
  WholeRows(int64_t n, int64_t m) : chunks(chunk_count(n, kSemidualChunk)) {
    const int64_t fit =
        (int64_t{1} << 18) / (chunks * kSemidualChunk * static_cast<int64_t>(sizeof(float)) * Tile::kRows);
    block_rows = Tile::kRows * std::clamp<int64_t>(fit, 1, PairBlock::kRows / Tile::kRows);
    const int64_t blocks = chunk_count(m, block_rows);
    const int64_t want = std::clamp<int64_t>(n * m / PairGrid::kPairsPerOwner, 1, kSemidualSections);
    section_rows = chunk_count(blocks, std::min(want, blocks)) * block_rows;
    sections = chunk_count(m, section_rows);
  }
  int64_t chunk_floats() const { return semidual_chunk_floats(block_rows); }
  int64_t block_floats() const { return chunks * chunk_floats(); }
  float* chunk(float* block, int64_t i) const { return block + i * chunk_floats(); }
  float* bases(float* block, int64_t i) const { return chunk(block, i) + block_rows * kSemidualChunk; }
};

// What 2^s of the rows of a block is relative to while their columns pass by, and its sums by lane. The base of a row is a
// score of its own and rises when one is kHeadroom above it, which is seldom: the scores that count are near it.
struct RisingRows {
  static constexpr float kHeadroom = 32;
  float base[PairBlock::kRows];
  HWY_ALIGN float sums[PairBlock::kRows * kLanes];

  RisingRows() {
    std::fill_n(base, PairBlock::kRows, std::numeric_limits<float>::lowest());
    std::fill_n(sums, PairBlock::kRows * kLanes, 0.f);
  }
  HWY_NOINLINE void raise(int64_t r, float top) {
    const FloatTag d;
    const float old = std::exchange(base[r], top);
    const Floats scale = hn::Set(d, std::exp2(old - top));
    hn::Store(hn::Mul(hn::Load(d, sums + r * kLanes), scale), d, sums + r * kLanes);
  }
};

// 2^(s - base) in place of a chunk of s, and its sums.
HWY_NOINLINE void exp_chunk(float* s, int64_t rows, int64_t cols, RisingRows& to) {
  const FloatTag d;
  for (int64_t r = 0; r < rows; ++r, s += kSemidualChunk) {
    Floats top0 = hn::Load(d, s), top1 = hn::Load(d, s + kLanes);
    for (int64_t c = Tile::kCols; c < cols; c += Tile::kCols) {
      top0 = hn::Max(top0, hn::Load(d, s + c));
      top1 = hn::Max(top1, hn::Load(d, s + c + kLanes));
    }
    const Floats top = hn::Max(top0, top1), limit = hn::Set(d, to.base[r] + RisingRows::kHeadroom);
    if (!hn::AllFalse(d, hn::Gt(top, limit))) to.raise(r, hn::GetLane(hn::MaxOfLanes(d, top)));
    const Floats base = hn::Set(d, to.base[r]);
    Floats sum0 = hn::Load(d, to.sums + r * kLanes), sum1 = hn::Zero(d);
    for (int64_t c = 0; c < cols; c += Tile::kCols) {
      const Floats e0 = exp2_nonpositive(d, hn::Sub(hn::Load(d, s + c), base));
      const Floats e1 = exp2_nonpositive(d, hn::Sub(hn::Load(d, s + c + kLanes), base));
      hn::Store(e0, d, s + c);
      hn::Store(e1, d, s + c + kLanes);
      sum0 = hn::Add(sum0, e0);
      sum1 = hn::Add(sum1, e1);
    }
    hn::Store(hn::Add(sum0, sum1), d, to.sums + r * kLanes);
  }
}

// d_a[i] += sum_r w_r e_ri
HWY_NOINLINE void add_weighted(const float* e, const float* w, int64_t rows, int64_t cols, double* d_a) {
  const FloatTag d;
  for (int64_t i = 0; i < cols; i += Tile::kCols) {
    Floats sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) {
      const Floats w_r = hn::Set(d, w[r]);
      sum0 = hn::MulAdd(w_r, hn::Load(d, e + r * kSemidualChunk + i), sum0);
      sum1 = hn::MulAdd(w_r, hn::Load(d, e + r * kSemidualChunk + i + kLanes), sum1);
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
    float* const e = blocks + thread * shape.block_floats();
    for (int64_t j = range.begin; j < range.end; j += shape.block_rows) {
      pack_rows(
          states, op.cost.y, {j, std::min(j + shape.block_rows, range.end)}, [](int64_t) { return 0.f; },
          rows);
      block(j, rows, e, sums);
    }
  }

 private:
  int64_t width(int64_t chunk) const {
    return std::min(kSemidualChunk, states.padded - chunk * kSemidualChunk);
  }

  // Expert states from j on.
  void block(int64_t j, const PairRows& rows, float* e, double* sums) const {
    RisingRows rising;
    for (int64_t c = 0; c < shape.chunks; ++c) {
      float* const s = shape.chunk(e, c);
      score_block(states, rows, c * kSemidualChunk, width(c), s, kSemidualChunk);
      exp_chunk(s, rows.count, width(c), rising);
      std::copy_n(rising.base, rows.count, shape.bases(e, c));
    }
    const double log_n = std::log(static_cast<double>(op.cost.x.rows));
    float w[PairBlock::kRows];
    for (int64_t r = 0; r < rows.count; ++r) {
      const double sum = sum_lanes(rising.sums + r * kLanes);
      op.col_lse[j + r] =
          static_cast<float>(static_cast<double>(rising.base[r]) * kLn2 + std::log(sum) - log_n);
      const auto q = static_cast<double>(op.q[j + r]);
      w[r] = q == 0 ? 0.f : static_cast<float>(q / sum);
    }
    for (int64_t c = 0; c < shape.chunks; ++c) {
      float* const chunk = shape.chunk(e, c);
      float* const w_c = shape.bases(e, c);  // p = w e by the last base
      for (int64_t r = 0; r < rows.count; ++r) {
        const bool is_last = w_c[r] == rising.base[r] || w[r] == 0.f;  // a base may be NaN
        w_c[r] = is_last ? w[r] : w[r] * std::exp2(w_c[r] - rising.base[r]);
        if (w[r] == 0.f) std::fill_n(chunk + r * kSemidualChunk, width(c), 0.f);  // 0 times NaN would be NaN
      }
      add_weighted(chunk, w_c, rows.count, width(c), sums + c * kSemidualChunk);
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
  const WholeRows shape(op.cost.x.rows, op.cost.y.rows);
  Scratch& scratch = ctx.scratch();
  const SemidualSweep sweep{op,
                            states,
                            shape,
                            scratch.take<float>(ctx.threads() * PairBlock::kRows * states.depth, name),
                            scratch.take<float>(ctx.threads() * shape.block_floats(), name),
                            scratch.take<double>(shape.sections * states.padded, name)};
  ctx.pool().parallel_for(shape.sections,
                          [&](int64_t section, int thread) HWY_ATTR { sweep.section(section, thread); });
  for (int64_t i = 0; i < op.cost.x.rows; ++i) {
    double sum = 0;
    for (int64_t s = 0; s < shape.sections; ++s) sum += sweep.d_a[s * states.padded + i];
    op.d_a[i] = static_cast<float>(sum);
  }
}

// -- two sweeps -----------------------------------------------------------------------------------------

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
  cpu::column_lse(ctx, {op.cost, op.a, op.eps, op.col_lse});
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
HWY_EXPORT(semidual);

void transport_semidual(Context& ctx, const TransportSemidual& op) {
  HWY_DYNAMIC_DISPATCH(semidual)(ctx, op);
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
