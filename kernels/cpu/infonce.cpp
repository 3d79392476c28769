// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// InfoNCE over an n x n score matrix that is never stored.
//
//   s_ij = <u_i, z2_j>     lse_i = log sum_j exp s_ij     p_ij = exp(s_ij - lse_i)
//   L = 1/n sum_i (lse_i - s_ii)
//   A_i = g/n (sum_j p_ij z2_j - z2_i)     d_z2_j = g/n (sum_i p_ij u_i - u_j)
//
// u, and the way from A and d_z2 back to v1, v2 and w0: infonce_rows-inl.h.
//
// forward   chunks of columns with a running maximum and sum per row.     n^2 (2 d flop + 1 exp)
// backward  chunks of columns, p from the saved lse.                      n^2 (6 d flop + 1 exp)
// train     forward over a block of rows, its chunks kept in the cache; then A and d_z2 from them, chunks that
//           were shifted by an earlier maximum corrected.                 n^2 (6 d flop + 1 exp)
//
// Work      d_z2 sums over rows, so the rows are cut into at most 8 sections by shape, each with its own d_z2
//           and its blocks in order; sections are added in order at the end: same bits on any number of
//           threads.
// Numerics  scores in units of log 2; running row maxima; columns past n are -inf before the maximum is taken;
//           1 - p_ii is the sum of the other columns. Sums over a chunk are float, chunks are added in order;
//           the loss is double.
// Memory    u, z2 twice, the sections' d_z2 (16 MiB at most, two at least) and a block per thread: O(n d).

#include <cmath>
#include <utility>

#include "../backends.h"

// foreach_target.h includes this file once per target and must come before everything else of Highway.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/infonce.cpp"
#include "hwy/foreach_target.h"
#include "infonce_rows-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

// A row is shifted anew when a score exceeds its shift by so much. 2^64 times 65,536 columns is far from the
// largest float, and seldom does a chunk have to be corrected.
constexpr float kSlack = 64.f;

constexpr double kInfoNceLn2 = 0.6931471805599453, kInfoNceLog2e = 1.4426950408889634;

// -- scores ----------------------------------------------------------------------------------------------

// One block of rows: u in strips for the scores, and scaled in panels for d_z2.
struct QueryBlock {
  static constexpr int64_t kRows = InfoNceShape::kMaxRows;
  static constexpr int64_t kMaxPanels = (128 + Tile::kCols - 1) / Tile::kCols;

  Range rows;
  int64_t count;
  float strips[kRows * 128];
  HWY_ALIGN float scaled[kMaxPanels * kRows * Tile::kCols];  // (panels, count, kCols)
  HWY_ALIGN float a[kMaxPanels * kRows * Tile::kCols];       // (panels, kRows, kCols): sum_j p_ij z2_j

  void load(const InfoNceShape& s, const float* u, Range range) {
    rows = range;
    count = range.end - range.begin;
    for (int64_t r = 0; r < chunk_count(count, Tile::kRows) * Tile::kRows; ++r) {
      float* strip = strips + r / Tile::kRows * Tile::kRows * s.d + r % Tile::kRows;
      const float* from = u + (range.begin + std::min(r, count - 1)) * s.padded();
      for (int64_t k = 0; k < s.d; ++k) strip[k * Tile::kRows] = from[k];
    }
  }
  // scaled_r = weight_r u_r
  void scale(const InfoNceShape& s, const float* u, const float* weight) {
    float* to = scaled;
    for (int64_t panel = 0; panel < s.panels; ++panel) {
      for (int64_t r = 0; r < count; ++r, to += Tile::kCols) {
        const float* from = u + (rows.begin + r) * s.padded() + panel * Tile::kCols;
        for (int64_t c = 0; c < Tile::kCols; ++c) to[c] = from[c] * weight[r];
      }
    }
  }
};

// out[r][j] = s of the block's rows and columns [col, col + cols), rows kChunk apart.
void score_columns(const InfoNceShape& s, const InfoNceBuffers& b, const QueryBlock& block, int64_t col,
                   int64_t cols, float* out) {
  constexpr int64_t kStride = InfoNceShape::kChunk;
  const FloatTag d;
  for (int64_t j = 0; j < cols; j += Tile::kCols) {
    const float* const panel = b.z2_scores + (col + j) * s.d;
    for (int64_t r = 0; r < block.count; r += Tile::kRows) {
      float* const to = out + r * kStride + j;
      tile_sums<Tile::kRows, Along::Columns>(s.d, block.strips + r * s.d, Tile::kRows, panel,
                                             [&](int row, int64_t c, Floats sum)
                                                 HWY_ATTR { hn::Store(sum, d, to + row * kStride + c); });
    }
  }
  const int64_t real = std::min(cols, s.n - col);
  for (int64_t r = 0; r < block.count && real < cols; ++r)
    std::fill(out + r * kStride + real, out + r * kStride + cols, -INFINITY);
}

// The largest of s in each lane.
HWY_INLINE Floats lane_max(const float* s, int64_t n) {
  const FloatTag d;
  Floats top0 = hn::Set(d, -INFINITY), top1 = top0;
  for (int64_t j = 0; j < n; j += Tile::kCols) {
    top0 = hn::Max(top0, hn::Load(d, s + j));
    top1 = hn::Max(top1, hn::Load(d, s + j + kLanes));
  }
  return hn::Max(top0, top1);
}

// s becomes 2^(s - shift); returns the sum.
HWY_INLINE double exp_in_place(float* s, int64_t n, float shift) {
  const FloatTag d;
  const Floats m = hn::Set(d, shift);
  Floats sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  for (int64_t j = 0; j < n; j += Tile::kCols) {
    const Floats e0 = exp2_nonpositive(d, hn::Sub(hn::Load(d, s + j), m));
    const Floats e1 = exp2_nonpositive(d, hn::Sub(hn::Load(d, s + j + kLanes), m));
    hn::Store(e0, d, s + j);
    hn::Store(e1, d, s + j + kLanes);
    sum0 = hn::Add(sum0, e0);
    sum1 = hn::Add(sum1, e1);
  }
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1))));
}

// -- gradients of one block ------------------------------------------------------------------------------

// A += P z2 and d_z2 += P^T (weighted u), P without its diagonal, for the chunk of columns [col, col + cols)
// in `p`. `first`: the section's d_z2 has no value yet.
void add_gradients(const InfoNceShape& s, const InfoNceBuffers& b, QueryBlock& block, const float* p,
                   int64_t col, int64_t cols, float* d_z2, bool first) {
  constexpr int64_t kStride = InfoNceShape::kChunk;
  for (int64_t panel = 0; panel < s.panels; ++panel) {
    const int64_t at = (panel * s.cols + col) * Tile::kCols;
    for (int64_t r = 0; r < block.count; r += Tile::kRows) {
      tile_product<Tile::kRows, Along::Rows>(cols, p + r * kStride, kStride, b.z2 + at,
                                             block.a + (panel * QueryBlock::kRows + r) * Tile::kCols,
                                             col > 0);
    }
    tile_rows<Along::Columns>(cols, block.count, p, kStride, block.scaled + panel * block.count * Tile::kCols,
                              d_z2 + at, !first);
  }
}

// What the diagonal of G adds: G_ii is minus the sum `others` of the row, by the same weight.
void add_diagonal(const InfoNceShape& s, const InfoNceBuffers& b, QueryBlock& block, const double* others,
                  float* d_z2) {
  for (int64_t panel = 0; panel < s.panels; ++panel) {
    for (int64_t r = 0; r < block.count; ++r) {
      const int64_t at = (panel * s.cols + block.rows.begin + r) * Tile::kCols;
      const auto g = static_cast<float>(-others[r]);
      float* const a = block.a + (panel * QueryBlock::kRows + r) * Tile::kCols;
      const float* const u = block.scaled + (panel * block.count + r) * Tile::kCols;
      for (int64_t c = 0; c < Tile::kCols; ++c) {
        a[c] += g * b.z2[at + c];
        d_z2[at + c] += g * u[c];
      }
    }
  }
}

// A_i = weight_i a_i, to its place in d_v1.
void store_queries(const InfoNceShape& s, const QueryBlock& block, const float* weight, Mat<float> d_v1) {
  for (int64_t panel = 0; panel < s.panels; ++panel) {
    const int64_t k0 = panel * Tile::kCols, width = std::min(Tile::kCols, s.d - k0);
    for (int64_t r = 0; r < block.count; ++r) {
      const float* a = block.a + (panel * QueryBlock::kRows + r) * Tile::kCols;
      float* to = d_v1.row(block.rows.begin + r) + k0;
      for (int64_t c = 0; c < width; ++c) to[c] = a[c] * weight[r];
    }
  }
}

// -- ops -------------------------------------------------------------------------------------------------

InfoNceBuffers take_buffers(Scratch& scratch, const char* op, const InfoNceShape& s, bool gradients) {
  return lay_out(
      s, gradients, [&](int64_t count) { return scratch.take<float>(count, op); },
      [&](int64_t count) { return scratch.take<double>(count, op); });
}

float mean_loss(const InfoNceShape& s, const double* parts) {
  double sum = 0;
  for (int64_t block = 0; block < s.blocks; ++block) sum += parts[block];
  return static_cast<float>(sum / static_cast<double>(s.n));
}

// A row of the softmax, its own column apart: with it a pair that is told apart well would leave nothing of
// the others, in 1 - p_ii as in the loss.
struct RowSoftmax {
  float max = -INFINITY, own = 0.f;  // max: of the other columns
  double others = 0;                 // sum of 2^(s - max) over them

  void raise(float top) {
    others *= std::exp2(static_cast<double>(max) - static_cast<double>(top));
    max = top;
  }
  float shift() const { return std::max(max, own); }
  double total() const { return scaled_others() + own_weight(); }  // relative to shift()
  double scaled_others() const { return others * scale(); }
  double scale() const {
    return max == -INFINITY ? 1.0 : std::exp2(static_cast<double>(max) - static_cast<double>(shift()));
  }
  double own_weight() const { return std::exp2(static_cast<double>(own) - static_cast<double>(shift())); }
  double lse() const { return static_cast<double>(shift()) * kInfoNceLn2 + std::log(total()); }
  double weight() const { return scale() / total(); }  // p_ij = weight() 2^(s_ij - max)
  double loss() const {                                // lse - s_ii
    if (own >= max) return std::log1p(scaled_others());
    return lse() - static_cast<double>(own) * kInfoNceLn2;
  }
};

// 2^(s - max) of the chunk of columns [col, col + cols) to `p`, max and sum of each row so far to `rows`.
void softmax_chunk(const InfoNceShape& s, const InfoNceBuffers& b, const QueryBlock& block, int64_t col,
                   int64_t cols, float* p, RowSoftmax* rows) {
  const FloatTag d;
  score_columns(s, b, block, col, cols, p);
  for (int64_t r = 0; r < block.count; ++r, p += InfoNceShape::kChunk) {
    RowSoftmax& row = rows[r];
    const int64_t own = block.rows.begin + r - col;
    if (own >= 0 && own < cols) row.own = std::exchange(p[own], -INFINITY);
    const Floats top = lane_max(p, cols);
    if (!hn::AllFalse(d, hn::Gt(top, hn::Set(d, row.max + kSlack)))) {
      row.raise(hn::GetLane(hn::MaxOfLanes(d, top)));
    }
    row.others += exp_in_place(p, cols, row.max == -INFINITY ? 0.f : row.max);  // -inf: its own column alone
  }
}

void forward_block(const InfoNceShape& s, const InfoNceBuffers& b, int64_t index, Vec<float> lse) {
  constexpr int64_t kRows = InfoNceShape::kMaxRows, kChunk = InfoNceShape::kChunk;
  HWY_ALIGN float p[kRows * kChunk];
  QueryBlock block;
  block.load(s, b.u, s.block_rows(index));
  RowSoftmax rows[kRows];
  for (int64_t j = 0; j < s.cols; j += kChunk) {
    softmax_chunk(s, b, block, j, std::min(kChunk, s.cols - j), p, rows);
  }
  double loss = 0;
  for (int64_t r = 0; r < block.count; ++r) {
    lse[block.rows.begin + r] = static_cast<float>(rows[r].lse());
    loss += rows[r].loss();
  }
  b.loss[index] = loss;
}

void forward(Context& ctx, const InfoNceForward& op) {
  const ScratchScope scope(ctx.scratch());
  const InfoNceShape s(op.in.v1.rows, op.in.v1.cols);
  const InfoNceBuffers b = take_buffers(ctx.scratch(), "infonce_forward", s, false);
  prepare(ctx.pool(), op.in, s, b);
  ctx.pool().parallel_for(s.blocks, [&](int64_t block, int) HWY_ATTR { forward_block(s, b, block, op.lse); });
  op.loss[0] = mean_loss(s, b.loss);
}

void backward_block(const InfoNceShape& s, const InfoNceBuffers& b, const InfoNceBackward& op, int64_t index,
                    float* d_z2, bool first) {
  constexpr int64_t kRows = InfoNceShape::kMaxRows, kChunk = InfoNceShape::kChunk;
  HWY_ALIGN float p[kRows * kChunk];
  float weight[kRows], u_weight[kRows];
  double others[kRows] = {};
  const double g_over_n = static_cast<double>(op.d_loss[0]) / static_cast<double>(s.n);
  std::fill_n(weight, kRows, static_cast<float>(g_over_n));
  std::fill_n(u_weight, kRows, static_cast<float>(g_over_n * kInfoNceLn2));
  QueryBlock block;
  block.load(s, b.u, s.block_rows(index));
  block.scale(s, b.u, u_weight);
  for (int64_t j = 0; j < s.cols; j += kChunk) {
    const int64_t width = std::min(kChunk, s.cols - j);
    score_columns(s, b, block, j, width, p);
    for (int64_t r = 0; r < block.count; ++r) {
      float* const row = p + r * kChunk;
      const double lse = static_cast<double>(op.lse[block.rows.begin + r]) * kInfoNceLog2e;
      const int64_t own = block.rows.begin + r - j;
      if (own >= 0 && own < width) row[own] = -INFINITY;
      others[r] += exp_in_place(row, width, static_cast<float>(lse));
    }
    add_gradients(s, b, block, p, j, width, d_z2, first);
  }
  add_diagonal(s, b, block, others, d_z2);
  store_queries(s, block, weight, op.d_v1);
}

void backward(Context& ctx, const InfoNceBackward& op) {
  const ScratchScope scope(ctx.scratch());
  const InfoNceShape s(op.in.v1.rows, op.in.v1.cols);
  const InfoNceBuffers b = take_buffers(ctx.scratch(), "infonce_backward", s, true);
  prepare(ctx.pool(), op.in, s, b);
  ctx.pool().parallel_for(s.sections, [&](int64_t section, int) HWY_ATTR {
    float* const d_z2 = b.d_z2 + section * s.cols * s.padded();
    const Range blocks = s.section_blocks(section);
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      backward_block(s, b, op, block, d_z2, block == blocks.begin);
    }
  });
  finish_gradients(ctx.pool(), op.in, s, b, op.d_v1, op.d_v2, op.d_w0);
}

// Brings a chunk that was shifted by an earlier maximum to that of the whole row.
void correct_shift(const float* shift, int64_t count, int64_t cols, const RowSoftmax* rows, float* p) {
  const FloatTag d;
  for (int64_t r = 0; r < count; ++r, p += InfoNceShape::kChunk) {
    if (!(shift[r] < rows[r].max)) continue;
    const Floats scale = hn::Set(d, std::exp2(shift[r] - rows[r].max));
    for (int64_t j = 0; j < cols; j += kLanes) hn::Store(hn::Mul(hn::Load(d, p + j), scale), d, p + j);
  }
}

// `kept` has s.kept_floats(): of each chunk p, then what each row was shifted by.
void train_block(const InfoNceShape& s, const InfoNceBuffers& b, const InfoNceTrain& op, int64_t index,
                 float* kept, float* d_z2, bool first) {
  constexpr int64_t kRows = InfoNceShape::kMaxRows;
  const auto p = [&](int64_t chunk) { return kept + chunk * s.chunk_floats(); };
  const auto shift = [&](int64_t chunk) { return p(chunk) + s.rows * InfoNceShape::kChunk; };
  QueryBlock block;
  block.load(s, b.u, s.block_rows(index));
  RowSoftmax rows[kRows];
  for (int64_t chunk = 0; chunk < s.chunks(); ++chunk) {
    const Range cols = s.chunk_cols(chunk);
    softmax_chunk(s, b, block, cols.begin, cols.end - cols.begin, p(chunk), rows);
    for (int64_t r = 0; r < block.count; ++r) shift(chunk)[r] = rows[r].max;
  }
  float weight[kRows], u_weight[kRows];
  double others[kRows], loss = 0;
  for (int64_t r = 0; r < block.count; ++r) {
    loss += rows[r].loss();
    others[r] = rows[r].others;
    const double share = rows[r].weight() / static_cast<double>(s.n);
    weight[r] = static_cast<float>(share);
    u_weight[r] = static_cast<float>(kInfoNceLn2 * share);
  }
  b.loss[index] = loss;
  block.scale(s, b.u, u_weight);
  for (int64_t chunk = 0; chunk < s.chunks(); ++chunk) {
    const Range cols = s.chunk_cols(chunk);
    correct_shift(shift(chunk), block.count, cols.end - cols.begin, rows, p(chunk));
    add_gradients(s, b, block, p(chunk), cols.begin, cols.end - cols.begin, d_z2, first);
  }
  add_diagonal(s, b, block, others, d_z2);
  store_queries(s, block, weight, op.d_v1);
}

void train(Context& ctx, const InfoNceTrain& op) {
  const char* name = "infonce_train";
  const ScratchScope scope(ctx.scratch());
  const InfoNceShape s(op.in.v1.rows, op.in.v1.cols);
  const InfoNceBuffers b = take_buffers(ctx.scratch(), name, s, true);
  const int64_t threads = std::min<int64_t>(ctx.threads(), s.sections);
  float* const kept = ctx.scratch().take<float>(threads * s.kept_floats(), name);
  prepare(ctx.pool(), op.in, s, b);
  ctx.pool().parallel_for(s.sections, [&](int64_t section, int thread) HWY_ATTR {
    float* const d_z2 = b.d_z2 + section * s.cols * s.padded();
    const Range blocks = s.section_blocks(section);
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      train_block(s, b, op, block, kept + thread * s.kept_floats(), d_z2, block == blocks.begin);
    }
  });
  op.loss[0] = mean_loss(s, b.loss);
  finish_gradients(ctx.pool(), op.in, s, b, op.d_v1, op.d_v2, op.d_w0);
}

size_t scratch_bytes(int threads, int64_t n, int64_t d) {
  const InfoNceShape s(n, d);
  size_t bytes = 0;
  lay_out(
      s, true,
      [&](int64_t count) {
        bytes += Scratch::rounded(static_cast<size_t>(count) * sizeof(float));
        return static_cast<float*>(nullptr);
      },
      [&](int64_t count) {
        bytes += Scratch::rounded(static_cast<size_t>(count) * sizeof(double));
        return static_cast<double*>(nullptr);
      });
  const int64_t kept = std::min<int64_t>(threads, s.sections) * s.kept_floats();
  return bytes + Scratch::rounded(static_cast<size_t>(kept) * sizeof(float));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {
HWY_EXPORT(forward);
HWY_EXPORT(backward);
HWY_EXPORT(train);
HWY_EXPORT(scratch_bytes);

void infonce_forward(Context& ctx, const InfoNceForward& op) { HWY_DYNAMIC_DISPATCH(forward)(ctx, op); }
void infonce_backward(Context& ctx, const InfoNceBackward& op) { HWY_DYNAMIC_DISPATCH(backward)(ctx, op); }
void infonce_train(Context& ctx, const InfoNceTrain& op) { HWY_DYNAMIC_DISPATCH(train)(ctx, op); }

size_t infonce_scratch_bytes(int threads, int64_t n, int64_t d) {
  return HWY_DYNAMIC_DISPATCH(scratch_bytes)(threads, n, d);
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
