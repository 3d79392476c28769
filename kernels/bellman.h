// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "transport.h"

namespace pwdice {

// The Bellman-flow term with its linear part:
//   y_i = (v_i - discount_i v_next_i - u_i)/eps,  discount_i = gamma (1 - terminal_i)
//   Kl: L = eps (log sum_i exp y_i - log n) - init_weight mean(v_init)      init_weight = 1 - gamma
//   chi2: L = eps/n sum_i f*(y_i) - init_weight mean(v_init)
// Its gradients are O(n) and come with the loss; the tape scales them. A loss or a discount that is not finite is
// NotFinite on the CPU, in a terminal state too (its v_next counts, times zero); on a GPU the loss or the gradients are
// NaN. An infinite v or v_next that leaves the loss finite has p = 0.
struct Bellman {
  Vec<const float> v, v_next, u, discount;  // (n): lambda_0(s), lambda_0(s'), lambda_1(s)
  Vec<const float> v_init;                  // (k): lambda_0 of initial states; k >= 1
  float init_weight;
  float eps;
  Divergence divergence;
  Vec<float> loss;                     // out (1)
  Vec<float> d_v, d_v_next, d_u;       // out (n)
  Vec<float> d_v_init;                 // out (k)
};
void bellman(Context& ctx, const Bellman& op);

// y_i as above, for a part of the data set (any number of parts, in any order). NaN is NotFinite on the CPU, and NaN in
// y_i alone on a GPU.
struct BellmanResidual {
  Vec<const float> v, v_next, u, discount;
  float eps;
  Vec<float> y;  // out (n)
};
void bellman_residual(Context& ctx, const BellmanResidual& op);

// Weights of behaviour cloning over the whole data set, largest 1: Kl exp(y - max y); chi2 relu(y) / max, as in the
// paper; exact chi2 relu(y + 1) / max, its derivative (all zero when nothing is positive). No y, no weights. A largest y
// that is not finite is NotFinite on the CPU.
struct PolicyWeights {
  Vec<const float> y;  // (n)
  Divergence divergence;
  Vec<float> w;  // out (n); may be y
};
void policy_weights(Context& ctx, const PolicyWeights& op);

size_t bellman_scratch_bytes(int64_t n);  // of bellman and policy_weights

}  // namespace pwdice
