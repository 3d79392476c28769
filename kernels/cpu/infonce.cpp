// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// InfoNCE over an n x n score matrix that is never stored.
//
//   s_ij = <u_i, z2_j>     lse_i = log sum_j exp s_ij     p_ij = exp(s_ij - lse_i)
//   L = 1/n sum_i (lse_i - s_ii)
//   A_i = g/n (sum_j p_ij z2_j - z2_i)     d_z2_j = g/n (sum_i p_ij u_i - u_j)
//
// u, and the way from A and d_z2 back to v1, v2 and w0: infonce_rows-inl.h. A block of rows: infonce_block-inl.h.
//
// forward   tiles of columns with a running shift and sum per row.        n^2 (2 d flop + 1 exp)
// backward  chunks of columns, p from the saved lse.                      n^2 (6 d flop + 1 exp)
// train     forward over a block of rows, its chunks kept in the cache; then A and d_z2 from them, chunks that
//           were shifted by less corrected.                               n^2 (6 d flop + 1 exp)
//
// Work      d_z2 sums over rows, so the rows are cut into at most 8 sections by shape, each with its own d_z2
//           and its blocks in order; the sections of each half are added in order, then the halves (SliceQueue): same
//           bits on any number of threads.
// Numerics  scores in units of log 2, shifted by about the row's largest so far, which is 32 from what is subtracted: p is
//           good to 2^-19; columns past n are -inf before that; 1 - p_ii is the sum of the other columns. Sums over
//           a chunk are float, chunks are added in order; the loss is double. 2^(s - shift) goes up to 2^32, in every
//           column at worst: embeddings that are not normalised may go up to 8e28/n before A overflows. Subnormal
//           numbers are zero.
// Bytes     a block of R rows (at most 70 with AVX-512 and 54 else, 28 or 24 beyond n = 16384) passes over z2: forward
//           reads n d floats a block; backward and train 2 n d, and they read and write d_z2, 2 n d more: 4 n^2 d/R
//           floats in all. p of a block, R n floats, is written and read once in train. v1, v2 and d_v pass once.
// Memory    u, z2 twice, d_z2 of the sections and of blocks that are helped with (16 MiB at most, two at least) and a
//           block per thread or d_z2, whichever are fewer: O(n d).

#include "../backends.h"

// foreach_target.h includes this file once per target and must come before everything else of Highway.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/infonce.cpp"
#include "hwy/foreach_target.h"
#include "infonce_block-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

// -- ops -------------------------------------------------------------------------------------------------

InfoNceBuffers take_buffers(Scratch& scratch, const char* op, const InfoNceShape& s, bool gradients) {
  return lay_out(
      s, gradients, [&](int64_t count) { return scratch.take<float>(count, op); },
      [&](int64_t count) { return scratch.take<double>(count, op); });
}

float mean_loss(const InfoNceShape& s, const double* parts, int64_t count) {
  double sum = 0;
  for (int64_t part = 0; part < count; ++part) sum += parts[part];
  return static_cast<float>(sum / static_cast<double>(s.n));
}

double forward_block(const InfoNceShape& s, const InfoNceBuffers& b, Range of, Vec<float> lse) {
  constexpr int64_t kRows = InfoNceShape::kMaxRows, kChunk = InfoNceShape::kChunk;
  HWY_ALIGN float p[kRows * kChunk];
  QueryBlock block;
  block.load(s, b.u, of);
  BlockSoftmax rows;
  for (int64_t j = 0; j < s.cols; j += kChunk) {
    softmax_chunk<Bases::Rising>(s, b, block, j, std::min(kChunk, s.cols - j), p, rows);
  }
  double loss = 0;
  for (int64_t r = 0; r < block.count; ++r) {
    const RowSoftmax row = rows.row(r);
    lse[block.rows.begin + r] = static_cast<float>(row.lse());
    loss += row.loss();
  }
  return loss;
}

void forward(Context& ctx, const InfoNceForward& op) {
  const ScratchScope scope(ctx.scratch());
  const InfoNceShape s(op.in.v1.rows, op.in.v1.cols);
  const InfoNceBuffers b = take_buffers(ctx.scratch(), "infonce_forward", s, false);
  prepare(ctx.pool(), op.in, s, b);
  const RowParts blocks = s.blocks();
  ctx.pool().parallel_for(blocks.count, [&](int64_t block, int) HWY_ATTR {
    const NoSubnormals mode;
    b.loss[block] = forward_block(s, b, blocks[block], op.lse);
  });
  op.loss[0] = mean_loss(s, b.loss, blocks.count);
}

void backward_block(const InfoNceShape& s, const InfoNceBuffers& b, const InfoNceBackward& op, Range of,
                    float* d_z2, bool first) {
  constexpr int64_t kRows = InfoNceShape::kMaxRows, kChunk = InfoNceShape::kChunk;
  HWY_ALIGN float p[kRows * kChunk];
  float weight[kRows], u_weight[kRows];
  const double g_over_n = static_cast<double>(op.d_loss[0]) / static_cast<double>(s.n);
  std::fill_n(weight, kRows, static_cast<float>(g_over_n));
  std::fill_n(u_weight, kRows, static_cast<float>(g_over_n * kInfoNceLn2));
  QueryBlock block;
  block.load(s, b.u, of);
  block.scale(s, b.u, u_weight);
  BlockSoftmax rows;
  for (int64_t r = 0; r < block.count; ++r) {
    rows.base[r] = static_cast<float>(static_cast<double>(op.lse[of.begin + r]) * kInfoNceLog2e);
  }
  for (int64_t j = 0; j < s.cols; j += kChunk) {
    const int64_t width = std::min(kChunk, s.cols - j);
    softmax_chunk<Bases::Fixed>(s, b, block, j, width, p, rows);
    add_gradients(s, b, block, p, j, width, d_z2, first);
  }
  add_diagonal(s, b, block, rows.others, d_z2);
  store_queries(s, block, weight, op.d_v1);
}

void backward(Context& ctx, const InfoNceBackward& op) {
  const ScratchScope scope(ctx.scratch());
  const InfoNceShape s(op.in.v1.rows, op.in.v1.cols);
  const InfoNceBuffers b = take_buffers(ctx.scratch(), "infonce_backward", s, true);
  prepare(ctx.pool(), op.in, s, b);
  SliceQueue queue = s.queue(0);  // a block adds its diagonal behind its sums: nobody else can do it
  const auto add_block = [&](int64_t section, int64_t block, int64_t place, bool add, int) HWY_ATTR {
    const NoSubnormals mode;
    backward_block(s, b, op, s.section_blocks(section)[block], b.d_z2 + place * s.d_z2_floats(), !add);
  };
  queue.run(ctx.pool(), add_block, [&](int64_t to, int64_t from) HWY_ATTR { fold_keys(s, b, to, from); });
  finish_gradients(ctx.pool(), op.in, s, b, queue, op.d_v1, op.d_v2, op.d_w0);
}

// The loss of the rows `of`. `kept` has s.kept_floats(): of each chunk p, then the bases of its rows.
double train_block(const InfoNceShape& s, const InfoNceBuffers& b, const InfoNceTrain& op, Range of,
                   float* kept, float* d_z2, bool first) {
  constexpr int64_t kRows = InfoNceShape::kMaxRows;
  const auto p = [&](int64_t chunk) { return kept + chunk * s.chunk_floats(); };
  const auto bases = [&](int64_t chunk) { return p(chunk) + s.rows * InfoNceShape::kChunk; };
  QueryBlock block;
  block.load(s, b.u, of);
  BlockSoftmax rows;
  for (int64_t chunk = 0; chunk < s.chunks(); ++chunk) {
    const Range cols = s.chunk_cols(chunk);
    softmax_chunk<Bases::Rising>(s, b, block, cols.begin, cols.end - cols.begin, p(chunk), rows);
    std::copy_n(rows.base, block.count, bases(chunk));
  }
  float weight[kRows], u_weight[kRows];
  double loss = 0;
  for (int64_t r = 0; r < block.count; ++r) {
    const RowSoftmax row = rows.row(r);
    loss += row.loss();
    const double share = row.weight() / static_cast<double>(s.n);
    weight[r] = static_cast<float>(share);
    u_weight[r] = static_cast<float>(kInfoNceLn2 * share);
  }
  block.scale(s, b.u, u_weight);
  for (int64_t chunk = 0; chunk < s.chunks(); ++chunk) {
    const Range cols = s.chunk_cols(chunk);
    correct_bases(bases(chunk), block.count, cols.end - cols.begin, rows, p(chunk));
    set_diagonal(block, cols, rows.others, p(chunk));
    add_gradients(s, b, block, p(chunk), cols.begin, cols.end - cols.begin, d_z2, first);
  }
  store_queries(s, block, weight, op.d_v1);
  return loss;
}

// Blocks whose chunks are kept at one time: of the threads, or of the places they work for if there are more threads.
int64_t kept_blocks(int threads, const InfoNceShape& s) {
  return std::min<int64_t>(threads, s.d_z2_places());
}

void train(Context& ctx, const InfoNceTrain& op) {
  const char* name = "infonce_train";
  const ScratchScope scope(ctx.scratch());
  const InfoNceShape s(op.in.v1.rows, op.in.v1.cols);
  const InfoNceBuffers b = take_buffers(ctx.scratch(), name, s, true);
  const bool by_thread = ctx.threads() <= s.d_z2_places();
  float* const kept = ctx.scratch().take<float>(kept_blocks(ctx.threads(), s) * s.kept_floats(), name);
  prepare(ctx.pool(), op.in, s, b);
  const int64_t losses = s.sections * s.max_blocks();
  std::fill_n(b.loss, losses, 0.0);
  SliceQueue queue = s.queue(s.spares);
  const auto add_block = [&](int64_t section, int64_t block, int64_t place, bool add, int thread) HWY_ATTR {
    const NoSubnormals mode;
    float* const own = kept + (by_thread ? thread : place) * s.kept_floats();
    b.loss[section * s.max_blocks() + block] =
        train_block(s, b, op, s.section_blocks(section)[block], own, b.d_z2 + place * s.d_z2_floats(), !add);
  };
  queue.run(ctx.pool(), add_block, [&](int64_t to, int64_t from) HWY_ATTR { fold_keys(s, b, to, from); });
  op.loss[0] = mean_loss(s, b.loss, losses);
  finish_gradients(ctx.pool(), op.in, s, b, queue, op.d_v1, op.d_v2, op.d_w0);
}

size_t needed_bytes(int threads, int64_t n, int64_t d) {
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
  const int64_t kept = kept_blocks(threads, s) * s.kept_floats();
  return bytes + Scratch::rounded(static_cast<size_t>(kept) * sizeof(float));
}

// Enough for fewer pairs too: some need more, with taller blocks or more sums of d_z2 that fit.
size_t scratch_bytes(int threads, int64_t n, int64_t d) {
  size_t most = needed_bytes(threads, n, d);
  const auto consider = [&](int64_t fewer) {
    if (fewer > 0 && fewer < n) most = std::max(most, needed_bytes(threads, fewer, d));
  };
  consider(InfoNceShape::kMaxTall);
  for (int64_t fit = 1; fit <= InfoNceShape::kMaxSections + InfoNceShape::kMaxSpares; ++fit) {
    consider(InfoNceShape::most_pairs(d, fit));
  }
  return most;
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
