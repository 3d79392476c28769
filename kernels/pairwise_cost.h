// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

enum class Distance {
  SquaredEuclidean,  // |x - y|^2; with embeddings as x and y this is the learned distance
  Euclidean,         // |x - y|
  Manhattan,         // sum |x - y|
  ExpManhattan,      // exp(sum |x - y|) - 1
  Cosine,            // 1 - <x, y> / max(|x| |y|, 1e-6)
  Indicator,         // 1[x != y], for tabular states
};

// c_ij = beta dist(x_i, y_j) - reward_i. Never stored by the ops that consume it: they ask for tiles.
// A high reward must be cheap to reach, hence the sign (the paper's main text misprints it).
// NaN in a state or a reward is NaN in all of its costs, whatever the distance, and in no other. An infinite coordinate
// is infinitely far; from one like it NaN (Indicator 0), and for Cosine always NaN.
struct PairCost {
  Distance distance;
  float beta;
  Mat<const float> x;       // (n, d)
  Mat<const float> y;       // (m, d)
  Vec<const float> reward;  // (n); zeros for a cost without it
};

struct CostMatrix {  // for inspection
  PairCost cost;
  Mat<float> c;  // out (n, m)
};
void cost_matrix(Context& ctx, const CostMatrix& op);

// On the CPU a cost of NaN is NotFinite, which names the input.
struct CostPaired {  // c_i = c(x_i, y_i); n == m
  PairCost cost;
  Vec<float> c;  // out (n)
};
void cost_paired(Context& ctx, const CostPaired& op);

size_t pair_cost_scratch_bytes(const Context& ctx, int64_t n, int64_t m, int64_t d);  // of cost_matrix

}  // namespace pwdice
