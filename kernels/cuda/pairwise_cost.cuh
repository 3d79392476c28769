// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <algorithm>

#include "../pairwise_cost.h"
#include "cost_tile.cuh"

namespace pwdice::cuda {

// Lengths of the points for Cosine, in scratch; null for the other distances.
void launch_lengths(const Launch& on, Mat<const float> points, float* length);
struct PairLengths {
  float *x = nullptr, *y = nullptr;
  PairLengths(const Launch& on, const PairCost& cost) {
    if (cost.distance != Distance::Cosine) return;
    x = on.scratch<float>(cost.x.rows);
    y = on.scratch<float>(cost.y.rows);
    launch_lengths(on, cost.x, x);
    launch_lengths(on, cost.y, y);
  }
  static size_t bytes(int64_t n, int64_t m) {
    return Scratch::rounded(static_cast<size_t>(n) * sizeof(float)) +
           Scratch::rounded(static_cast<size_t>(m) * sizeof(float));
  }
};

// c_i = c(x_i, y_i)
void launch_paired_costs(const Launch& on, const PairCost& cost, float* c);

// Blocks of owner rows, and splits of the streamed tiles so that few owners still fill the device. From the
// shape alone.
struct PairGrid {
  static constexpr int64_t kBlocks = 128, kMaxSplits = 32;
  int64_t tiles;
  dim3 blocks;

  PairGrid(const Launch& on, int64_t owners, int64_t streamed)
      : tiles(ceil_div(streamed, CostTile::kCols)),
        blocks(on.grid(owners, CostTile::kRows), static_cast<unsigned>(splits(owners, streamed))) {}
  static int64_t splits(int64_t owners, int64_t streamed) {
    const int64_t rows = std::max<int64_t>(1, ceil_div(owners, CostTile::kRows));
    return std::clamp<int64_t>(std::min(kBlocks / rows, ceil_div(streamed, CostTile::kCols)), 1, kMaxSplits);
  }
  // The most partial sums of up to so many owners: fewer of them are split more often.
  static int64_t most_parts(int64_t owners, int64_t streamed) {
    const int64_t fewer = std::min(owners, kBlocks * CostTile::kRows);  // beyond, nothing is split
    int64_t most = splits(owners, streamed) * owners;
    for (int64_t rows = CostTile::kRows; rows <= fewer; rows += CostTile::kRows) {
      most = std::max(most, splits(rows, streamed) * rows);
    }
    return most;
  }
};

}  // namespace pwdice::cuda
