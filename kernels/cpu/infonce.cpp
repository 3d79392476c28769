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
// train     A block of 48 rows of the softmax (24 for a large n) is computed whole and used three times while
//           it is in the cache: maximum and exp, A, d_z2.                 n^2 (6 d flop + 1 exp)
// forward   chunks of columns with a running maximum and sum per row.     n^2 (2 d flop + 1 exp)
// backward  chunks of columns, p from the saved lse.                      n^2 (6 d flop + 1 exp)
//
// Work      d_z2 sums over rows, so the rows are cut into at most 8 sections by shape, each with its own d_z2
//           and its blocks in order; sections are added in order at the end: same bits on any number of
//           threads.
// Numerics  scores in units of log 2; exact row maxima; columns past n are -inf before the maximum is taken;
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
    for (int64_t r = 0; r < count; ++r) {
      const float* from = u + (rows.begin + r) * s.padded();
      for (int64_t k = 0; k < s.padded(); ++k) {
        scaled[(k / Tile::kCols * count + r) * Tile::kCols + k % Tile::kCols] = from[k] * weight[r];
      }
    }
  }
};

// out[r][j] = s of rows [rows) of the block and columns [col, col + cols).
void score_columns(const InfoNceShape& s, const InfoNceBuffers& b, const QueryBlock& block, Range rows,
                   int64_t col, int64_t cols, float* out, int64_t stride) {
  static constexpr float kZeros[Tile::kRows] = {};
  TileInput in{};
  in.row = in.row_norm = kZeros;
  in.depth = s.d;
  in.scale = 1.f;
  for (int64_t j = col; j < col + cols; j += Tile::kCols) {
    in.panel = b.z2_scores + j * s.d;
    in.col = in.col_norm = b.column + j;
    for (int64_t r = rows.begin; r < rows.end; r += Tile::kRows) {
      in.strip = block.strips + r * s.d;
      score_tile<Form::Dot>(in, out + r * stride + (j - col), stride);
    }
  }
}

float row_max(const float* s, int64_t n) {
  const FloatTag d;
  Floats top0 = hn::Set(d, -INFINITY), top1 = top0;
  for (int64_t j = 0; j < n; j += Tile::kCols) {
    top0 = hn::Max(top0, hn::LoadU(d, s + j));
    top1 = hn::Max(top1, hn::LoadU(d, s + j + kLanes));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(top0, top1)));
}

// s becomes 2^(s - shift); returns the sum.
HWY_NOINLINE double exp_in_place(float* s, int64_t n, float shift) {
  const FloatTag d;
  const Floats m = hn::Set(d, shift);
  Floats sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  for (int64_t j = 0; j < n; j += Tile::kCols) {
    const Floats e0 = exp2_nonpositive(d, hn::Sub(hn::LoadU(d, s + j), m));
    const Floats e1 = exp2_nonpositive(d, hn::Sub(hn::LoadU(d, s + j + kLanes), m));
    hn::StoreU(e0, d, s + j);
    hn::StoreU(e1, d, s + j + kLanes);
    sum0 = hn::Add(sum0, e0);
    sum1 = hn::Add(sum1, e1);
  }
  HWY_ALIGN float lanes[Tile::kCols];
  hn::Store(sum0, d, lanes);
  hn::Store(sum1, d, lanes + kLanes);
  double sum = 0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

// -- gradients of one block ------------------------------------------------------------------------------

// A += P z2 and d_z2 += P^T (weighted u), P without its diagonal, for columns [col, col + cols), a
// chunk at a time; p(0, col) is at `p`. `first`: the section's d_z2 has no value yet.
void add_gradients(const InfoNceShape& s, const InfoNceBuffers& b, QueryBlock& block, const float* p,
                   int64_t stride, int64_t col, int64_t cols, float* d_z2, bool first) {
  constexpr int64_t kRows = InfoNceShape::kMaxRows, kChunk = InfoNceShape::kChunk;
  for (int64_t j0 = col; j0 < col + cols; j0 += kChunk) {
    const int64_t width = std::min(kChunk, col + cols - j0);
    const float* const chunk = p + (j0 - col);
    for (int64_t panel = 0; panel < s.panels; ++panel) {
      const float* const z2 = b.z2 + (panel * s.cols + j0) * Tile::kCols;
      for (int64_t r = 0; r < block.count; r += Tile::kRows) {
        tile_product<Tile::kRows, Along::Rows>(width, chunk + r * stride, stride, z2,
                                               block.a + (panel * kRows + r) * Tile::kCols, j0 > 0);
      }
      float* const to = d_z2 + (panel * s.cols + j0) * Tile::kCols;
      const float* const u = block.scaled + panel * block.count * Tile::kCols;
      for (int64_t j = 0; j < width; j += Tile::kRows) {
        tile_product<Tile::kRows, Along::Columns>(block.count, chunk + j, stride, u, to + j * Tile::kCols,
                                                  !first);
      }
    }
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
  for (int64_t r = 0; r < block.count; ++r) {
    for (int64_t k = 0; k < s.d; ++k) {
      const int64_t at = (k / Tile::kCols * QueryBlock::kRows + r) * Tile::kCols + k % Tile::kCols;
      d_v1(block.rows.begin + r, k) = block.a[at] * weight[r];
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

  float shift() const { return std::max(max, own); }
  double total() const { return scaled_others() + own_weight(); }  // relative to shift()
  double scaled_others() const {
    return max == -INFINITY ? others
                            : others * std::exp2(static_cast<double>(max) - static_cast<double>(shift()));
  }
  double own_weight() const { return std::exp2(static_cast<double>(own) - static_cast<double>(shift())); }
  double lse() const { return static_cast<double>(shift()) * kInfoNceLn2 + std::log(total()); }
  double loss() const {  // lse - s_ii
    if (own >= max) return std::log1p(scaled_others());
    return lse() - static_cast<double>(own) * kInfoNceLn2;
  }
};

// Running maximum and sum of each row over the chunks; lse and the loss of the block.
void forward_block(const InfoNceShape& s, const InfoNceBuffers& b, int64_t index, Vec<float> lse) {
  constexpr int64_t kRows = InfoNceShape::kMaxRows, kChunk = InfoNceShape::kChunk;
  HWY_ALIGN float tile[kRows * kChunk];
  QueryBlock block;
  block.load(s, b.u, s.block_rows(index));
  RowSoftmax rows[kRows];
  for (int64_t j = 0; j < s.cols; j += kChunk) {
    const int64_t width = std::min(kChunk, s.cols - j);
    score_columns(s, b, block, {0, block.count}, j, width, tile, kChunk);
    for (int64_t r = 0; r < block.count; ++r) {
      float* const row = tile + r * kChunk;
      const int64_t own = block.rows.begin + r - j;
      if (own >= 0 && own < width) rows[r].own = std::exchange(row[own], -INFINITY);
      const float top = row_max(row, width);
      if (top > rows[r].max) {
        rows[r].others *= std::exp2(static_cast<double>(rows[r].max) - static_cast<double>(top));
        rows[r].max = top;
      }
      if (rows[r].max != -INFINITY) rows[r].others += exp_in_place(row, width, rows[r].max);
    }
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
  HWY_ALIGN float tile[kRows * kChunk];
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
    score_columns(s, b, block, {0, block.count}, j, width, tile, kChunk);
    for (int64_t r = 0; r < block.count; ++r) {
      float* const row = tile + r * kChunk;
      const double lse = static_cast<double>(op.lse[block.rows.begin + r]) * kInfoNceLog2e;
      const int64_t own = block.rows.begin + r - j;
      if (own >= 0 && own < width) row[own] = -INFINITY;
      others[r] += exp_in_place(row, width, static_cast<float>(lse));
    }
    add_gradients(s, b, block, tile, kChunk, j, width, d_z2, first);
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
    const Range blocks = chunk_range(s.blocks, s.section_blocks, section);
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      backward_block(s, b, op, block, d_z2, block == blocks.begin);
    }
  });
  finish_gradients(ctx.pool(), op.in, s, b, op.d_v1, op.d_v2, op.d_w0);
}

// One block of whole rows; `p` has s.rows x s.stride() floats.
void train_block(const InfoNceShape& s, const InfoNceBuffers& b, const InfoNceTrain& op, int64_t index,
                 float* p, float* d_z2, bool first) {
  constexpr int64_t kRows = InfoNceShape::kMaxRows, kPart = PairBlock::kRows;
  const double n = static_cast<double>(s.n);
  QueryBlock block;
  block.load(s, b.u, s.block_rows(index));
  float weight[kRows], u_weight[kRows];
  double others[kRows], loss = 0;
  // Part by part, so that the scores are still in the L2 cache when they are exponentiated.
  for (int64_t part = 0; part < block.count; part += kPart) {
    const Range rows{part, std::min(part + kPart, block.count)};
    score_columns(s, b, block, rows, 0, s.cols, p, s.stride());
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      float* const row = p + r * s.stride();
      RowSoftmax softmax;
      softmax.own = std::exchange(row[block.rows.begin + r], -INFINITY);
      softmax.max = std::max(row_max(row, s.cols), softmax.own);
      softmax.others = exp_in_place(row, s.cols, softmax.max);
      loss += softmax.loss();
      others[r] = softmax.others;
      weight[r] = static_cast<float>(1 / (n * softmax.total()));
      u_weight[r] = static_cast<float>(kInfoNceLn2 / (n * softmax.total()));
    }
  }
  b.loss[index] = loss;
  block.scale(s, b.u, u_weight);
  add_gradients(s, b, block, p, s.stride(), 0, s.cols, d_z2, first);
  add_diagonal(s, b, block, others, d_z2);
  store_queries(s, block, weight, op.d_v1);
}

void train(Context& ctx, const InfoNceTrain& op) {
  const char* name = "infonce_train";
  const ScratchScope scope(ctx.scratch());
  const InfoNceShape s(op.in.v1.rows, op.in.v1.cols);
  const InfoNceBuffers b = take_buffers(ctx.scratch(), name, s, true);
  const int64_t size = s.rows * s.stride();
  float* p = ctx.scratch().take<float>(std::min<int64_t>(ctx.threads(), s.sections) * size, name);
  prepare(ctx.pool(), op.in, s, b);
  ctx.pool().parallel_for(s.sections, [&](int64_t section, int thread) HWY_ATTR {
    float* const d_z2 = b.d_z2 + section * s.cols * s.padded();
    const Range blocks = chunk_range(s.blocks, s.section_blocks, section);
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      train_block(s, b, op, block, p + thread * size, d_z2, block == blocks.begin);
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
  const int64_t blocks = std::min<int64_t>(threads, s.sections) * s.rows * s.stride();
  return bytes + Scratch::rounded(static_cast<size_t>(blocks) * sizeof(float));
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
