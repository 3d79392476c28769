// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The sweeps over the n x n scores of InfoNCE, over embeddings that are already normalised, multiplied by the
// metric and padded (pair_tile.cuh). infonce.cu builds an op from them.

#include "../infonce.h"
#include "launch.cuh"
#include "pair_tile.cuh"

namespace pwdice::cuda {

// The columns of a sweep are cut into splits, so that 4096 rows give 128 blocks and not 32; each block's
// result is a part that the next kernel merges in order.
constexpr int kSplitBlocks = 128, kMaxSplits = 8;
constexpr int sweep_splits(int64_t row_blocks) {
  return row_blocks >= kSplitBlocks                ? 1
         : row_blocks * kMaxSplits <= kSplitBlocks ? kMaxSplits
                                                   : static_cast<int>(kSplitBlocks / row_blocks);
}

// Bytes that one sweep loads from global memory: each row block streams the other matrix once and reads its
// own rows once per split.
constexpr int64_t sweep_bytes(int64_t n, int64_t d, int64_t rows_per_block) {
  return (n / rows_per_block + sweep_splits(n / rows_per_block)) * n * d * 4;
}
static_assert(sweep_bytes(4096, 32, Fp32Tile<32>::kRows) <= int64_t{20} << 20,
              "the fused op must not load more than 20 MiB; one pass over stored scores is 64 MiB");

// The operands of a sweep in the arithmetic of its engine: FP32 as they are, or rounded copies.
struct SweepOperands {
  ScorePrecision precision;
  const void *u, *z2;  // (padded rows, width)
  int64_t n;
  int width;
};

// parts (splits, padded rows): logsumexp of each row's scores over a split's columns j != i; diagonal: s_ii.
int sweep_lse(const Launch& on, const SweepOperands& in, Lse* parts, float* diagonal);

// parts (splits, padded rows, width): sum_j p_ij z2_j by rows, sum_i p_ij u_i by columns, i != j, p_ij =
// exp(s_ij - lse_i).
enum class Sweep { Rows, Columns };
int sweep_apply(const Launch& on, const SweepOperands& in, Sweep direction, const float* lse, float* parts);

// The two for one engine; each is instantiated in a file of its own.
template <int D>
class Tf32Tile;
template <int D>
class Bf16Tile;
template <template <int> class Tile>
struct Sweeps {
  static int lse(const Launch& on, const SweepOperands& in, Lse* parts, float* diagonal);
  static int apply(const Launch& on, const SweepOperands& in, Sweep direction, const float* lse,
                   float* parts);
};
extern template struct Sweeps<Fp32Tile>;
extern template struct Sweeps<Tf32Tile>;
extern template struct Sweeps<Bf16Tile>;

}  // namespace pwdice::cuda
