// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// What the ops that take blocks of rows through a whole network (mlp.cpp, gradient_penalty.cpp) borrow.

#include <algorithm>
#include <cstdint>
#include <span>

#include "../mlp.h"
#include "gemm.h"

namespace pwdice::cpu {

// Into how many slices a backward pass cuts n rows, by n alone. A slice has its own sums over rows, which cost as much
// to add up as a block of rows costs to compute; few of them keep many threads busy with what can be helped with.
inline int64_t row_slices(int64_t n) { return n < 256 ? 1 : n < 1536 ? 2 : n < 4096 ? 4 : 8; }

// Blocks of rows that a thread may compute for another one; each needs sums of its own.
inline constexpr int64_t kSliceSpares = 8;

// Of SliceSums: the floats in all d_W, those of them in layers with few inputs, and the values in all d_b.
inline size_t slice_sums_bytes(int64_t n, int64_t weights, int64_t narrow, int64_t sums) {
  const int64_t places = row_slices(n) + kSliceSpares;
  return Scratch::rounded(static_cast<size_t>((places - 1) * weights + narrow) * sizeof(float)) +
         Scratch::rounded(static_cast<size_t>(places * sums) * sizeof(double));
}

inline size_t mlp_scratch_bytes(int64_t n, std::span<const int64_t> sizes) {
  size_t forward = 0, backward = 0;
  int64_t weights = 0, narrow = 0, sums = 0;
  for (size_t l = 0; l + 1 < sizes.size(); ++l) {
    forward += gemm_panels_bytes(sizes[l], sizes[l + 1]);
    backward += gemm_panels_bytes(sizes[l + 1], sizes[l]);
    weights += sizes[l] * sizes[l + 1], sums += sizes[l + 1];
    narrow += sizes[l] <= kNarrow ? sizes[l] * sizes[l + 1] : 0;
  }
  return std::max(forward, backward + slice_sums_bytes(n, weights, narrow, sums));
}

// A thread's share in the gradient penalty: six blocks of rows and a row of hidden units, and two blocks of inputs.
inline int64_t penalty_block_floats(int64_t d, int64_t m) {
  constexpr int64_t kLine = 16;
  return (6 * kGemmMaxBlockRows + 1) * mlp_stride(m) +
         (2 * kGemmMaxBlockRows * d + kLine - 1) / kLine * kLine;
}

inline size_t gradient_penalty_scratch_bytes(int threads, int64_t n, int64_t d, int64_t m) {
  const size_t panels = gemm_panels_bytes(d, m) + 2 * gemm_panels_bytes(m, m) + gemm_panels_bytes(m, d);
  const size_t blocks = static_cast<size_t>(threads * penalty_block_floats(d, m)) * sizeof(float);
  return panels + slice_sums_bytes(n, m * (d + m), d <= kNarrow ? m * d : 0, 3 * m) +
         Scratch::rounded(blocks);
}

}  // namespace pwdice::cpu
