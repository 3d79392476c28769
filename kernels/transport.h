// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "pairwise_cost.h"

namespace pwdice {

// f-divergence of the regularisers. Chi2 is the paper's (y + 1)^2 / 2; Chi2Exact is the true conjugate,
// relu(y + 1)^2 / 2 - 1/2.
enum class Divergence { Kl, Chi2, Chi2Exact };

// The transport term of the dual over all pairs of n states (weight 1/n each) and m expert states (weights q).
// The n x m matrix is never stored and the gradients are row and column sums, so each op returns them with the
// loss; the tape scales them. q: non-negative, sum 1 (checked to 1e-3 on the CPU). q_j = 0 drops expert state j: it
// takes no part in the loss and the gradients, not even where it is NaN. In the others NaN is NotFinite on the CPU and
// a loss of NaN on a GPU. An expert state infinitely far from all others has p = 0 in the joint loss; the semidual
// loss is infinite with one, which is NotFinite.

// L = eps log sum_ij q_j/n exp(y_ij),  y_ij = (a_i + b_j - c_ij)/eps,  p = the softmax of y + log q
// d_a_i = sum_j p_ij        d_b_j = sum_i p_ij
struct TransportJoint {
  PairCost cost;
  Vec<const float> a, b, q;  // (n), (m), (m)
  float eps;
  Vec<float> loss;      // out (1)
  Vec<float> d_a, d_b;  // out (n), (m)
};
void transport_joint(Context& ctx, const TransportJoint& op);

// The least of L_joint - sum_j q_j b_j over b, which is at b_j = -eps lse_j (its gradient L_joint: p sums to q):
// lse_j = log sum_i 1/n exp((a_i - c_ij)/eps)      L = eps sum_j q_j lse_j
// d_a_i = sum_j q_j p_ij,  p_ij = exp((a_i - c_ij)/eps - lse_j)/n
struct TransportSemidual {
  PairCost cost;
  Vec<const float> a, q;  // (n), (m)
  float eps;
  Vec<float> loss;     // out (1)
  Vec<float> d_a;      // out (n)
  Vec<float> col_lse;  // out (m)
};
void transport_semidual(Context& ctx, const TransportSemidual& op);

// L = eps sum_ij q_j/n f*(y_ij), divergence Chi2 or Chi2Exact
struct TransportChi2 {
  PairCost cost;
  Vec<const float> a, b, q;
  float eps;
  Divergence divergence;
  Vec<float> loss;
  Vec<float> d_a, d_b;
};
void transport_chi2(Context& ctx, const TransportChi2& op);

// The reference implementation's estimate: row i of a meets row i of b only. n == m.
// Kl: L = eps (log sum_i exp y_i - log n)          chi2: L = eps/n sum_i f*(y_i)
struct TransportPaired {
  PairCost cost;
  Vec<const float> a, b;  // (n)
  float eps;
  Divergence divergence;
  Vec<float> loss;
  Vec<float> d_a, d_b;
};
void transport_paired(Context& ctx, const TransportPaired& op);

// lse_j = log sum_i 1/n exp((a_i - c_ij)/eps) as a streaming pass: n may be the whole data set. Both all-pairs
// losses follow from it: joint = eps log sum_j q_j exp(b_j/eps + lse_j), semidual = eps sum_j q_j lse_j.
// lse_j is -inf where every state is infinitely far; NaN is NotFinite on the CPU. There are no weights: every expert
// state has its lse_j, and a transport_semidual that drops one (q_j = 0) writes what it would be.
struct ColumnLse {
  PairCost cost;
  Vec<const float> a;  // (n)
  float eps;
  Vec<float> col_lse;  // out (m)
};
void column_lse(Context& ctx, const ColumnLse& op);

// Enough for each op above, for fewer states of either kind too; of column_lse alone, on the CPU the same for every n.
size_t transport_scratch_bytes(const Context& ctx, int64_t n, int64_t m, int64_t d);
size_t column_lse_scratch_bytes(const Context& ctx, int64_t n, int64_t m, int64_t d);

}  // namespace pwdice
