// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "../context.h"
#include "parallel.h"

namespace pwdice::cpu {

// Sizes of the pair tiles that hold for every SIMD target: scratch is sized before the target is known.
inline constexpr int64_t kPairMaxRows = 28, kPairCols = 64, kPairPadding = 32;

// transport_semidual keeps whole columns of up to so many rows, summed by so many owners.
inline constexpr int64_t kWholeColumns = 65536, kSemidualSections = 16, kSemidualChunk = 128;

// Floats of its chunk of kSemidualChunk columns of a block of rows, and a number for each row; an odd number of cache lines.
constexpr int64_t semidual_chunk_floats(int64_t rows) {
  static_assert(kSemidualChunk % 32 == 0 && kPairMaxRows <= 48);
  return rows * kSemidualChunk + 48;
}

// Who computes which part of an n x m sweep. Columns are cut so that a section's packed panels stay in the L2
// cache, rows so that there are some 32 owners; both follow from the shape alone. An owner sweeps its
// rectangle in order and keeps the row and column sums of it, which are merged in owner order: same bits on
// any number of threads.
struct PairGrid {
  static constexpr int64_t kSectionCols = 1024, kOwners = 32, kPairsPerOwner = 1 << 16;

  int64_t n, m, col_sections, row_sections, section_rows;

  // block_rows: what an owner takes at a time; sections of rows are multiples of it.
  PairGrid(int64_t rows, int64_t cols, int64_t block_rows) : n(rows), m(cols) {
    col_sections = std::max<int64_t>(chunk_count(m, kSectionCols), 1);
    const int64_t owners = std::clamp<int64_t>(n * m / kPairsPerOwner, 1, kOwners);
    const int64_t blocks = std::max<int64_t>(chunk_count(n, block_rows), 1);
    const int64_t want = std::min(blocks, max_row_sections(m));
    const int64_t blocks_per_section = chunk_count(blocks, std::clamp<int64_t>(owners, 1, want));
    section_rows = blocks_per_section * block_rows;
    row_sections = std::max<int64_t>(chunk_count(n, section_rows), 1);
  }
  static int64_t max_row_sections(int64_t m) {
    return std::max<int64_t>(1, kOwners / std::max<int64_t>(chunk_count(m, kSectionCols), 1));
  }

  int64_t owners() const { return row_sections * col_sections; }
  Range rows(int64_t owner) const { return chunk_range(n, section_rows, owner / col_sections); }
  Range cols(int64_t owner) const { return chunk_range(m, kSectionCols, owner % col_sections); }
};

// Bytes of m columns of width d in packed panels with their constants.
inline size_t pair_columns_bytes(int64_t m, int64_t d) {
  const auto padded = static_cast<size_t>(m + kPairPadding);
  return Scratch::rounded(padded * static_cast<size_t>(d) * sizeof(float)) +
         3 * Scratch::rounded(padded * sizeof(float)) +
         Scratch::rounded(static_cast<size_t>(d) * sizeof(float));
}

// Bytes of one thread's block of rows and of its scores, so many floats.
inline size_t pair_block_bytes(int64_t d, int64_t scores = kPairMaxRows * kPairCols) {
  return Scratch::rounded(static_cast<size_t>(kPairMaxRows * d) * sizeof(float)) +
         Scratch::rounded(static_cast<size_t>(scores) * sizeof(float));
}

}  // namespace pwdice::cpu
