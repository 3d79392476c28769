// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "../context.h"

namespace pwdice::cpu {

// Sizes of the packed operands of gemm-inl.h. The SIMD target is chosen at run time, the scratch size before
// that, so these are upper bounds over all targets.
inline constexpr int64_t kGemmMaxTileRows = 14, kGemmMaxTileCols = 32, kGemmMaxBlockRows = 56;
inline constexpr int64_t kGemmDepth = 256;    // rows of B in a block: 256 x 16 floats are half an L1 cache
inline constexpr int64_t kGemmMaxSlices = 8;  // of k in columns_product
inline constexpr int64_t kNarrow = 32;  // inputs or outputs: up to here a weight gradient has a way of its own
inline constexpr int64_t kFewOutputs = 8, kFewRows = 4;  // up to here a linear layer is dot products

// Bytes of a (k, n) right operand in panels.
inline size_t gemm_panels_bytes(int64_t k, int64_t n) {
  return Scratch::rounded(static_cast<size_t>(k * (n + kGemmMaxTileCols)) * sizeof(float));
}

// Bytes that columns_product needs for an (m, n) result; the number of rows summed over does not matter. Per
// slice of k: both operands packed, a partial result and partial column sums.
inline size_t gemm_columns_bytes(int64_t m, int64_t n) {
  const auto floats = [](int64_t count) {
    return Scratch::rounded(static_cast<size_t>(count) * sizeof(float));
  };
  return kGemmMaxSlices * (floats(kGemmDepth * (m + kGemmMaxTileRows)) + gemm_panels_bytes(kGemmDepth, n) +
                           floats(m * n) + 2 * floats(m));
}

}  // namespace pwdice::cpu
