// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "../kernels/bellman.h"
#include "../kernels/elementwise.h"
#include "../kernels/infonce.h"
#include "../kernels/transport.h"
#include "tape.h"

namespace pwdice {

// --- Small functions: any order of derivative ---

Tensor matmul(Tape& tape, const Tensor& a, const Tensor& b, bool transpose_a = false,
              bool transpose_b = false);

Tensor add(Tape& tape, const Tensor& a, const Tensor& b);  // equal shapes, here and below
Tensor sub(Tape& tape, const Tensor& a, const Tensor& b);
Tensor mul(Tape& tape, const Tensor& a, const Tensor& b);
Tensor div(Tape& tape, const Tensor& a, const Tensor& b);

Tensor affine(Tape& tape, const Tensor& x, float scale, float shift);  // scale x + shift
Tensor scale(Tape& tape, const Tensor& x, float factor);
Tensor negate(Tape& tape, const Tensor& x);
Tensor square(Tape& tape, const Tensor& x);
Tensor sqrt(Tape& tape, const Tensor& x);  // its gradient at 0 is not finite
Tensor reciprocal(Tape& tape, const Tensor& x);
Tensor exp(Tape& tape, const Tensor& x);
Tensor log(Tape& tape, const Tensor& x);
Tensor tanh(Tape& tape, const Tensor& x);
Tensor relu(Tape& tape, const Tensor& x);
Tensor softplus(Tape& tape, const Tensor& x);
Tensor sigmoid(Tape& tape, const Tensor& x);

Tensor sum(Tape& tape, const Tensor& x);                                 // (1, 1)
Tensor mean(Tape& tape, const Tensor& x);                                // (1, 1)
Tensor row_sum(Tape& tape, const Tensor& x);                             // (n, d) -> (n, 1)
Tensor column_sum(Tape& tape, const Tensor& x);                          // (n, d) -> (d, 1)
Tensor expand(Tape& tape, const Tensor& s, int64_t rows, int64_t cols);  // (1, 1) -> (rows, cols)
Tensor repeat_column(Tape& tape, const Tensor& s, int64_t cols);         // (n, 1) -> (n, cols), y_ij = s_i
Tensor repeat_row(Tape& tape, const Tensor& s, int64_t rows);            // (d, 1) -> (rows, d), y_ij = s_j
Tensor scale_rows(Tape& tape, const Tensor& x, const Tensor& s);         // y_ij = x_ij s_i
Tensor scale_by(Tape& tape, const Tensor& x, const Tensor& s);           // y = s x, s (1, 1)

// Part of a tensor: whole rows are a view, anything else a copy. place() is the reverse: zeros around x.
Tensor block(Tape& tape, const Tensor& x, int64_t row, int64_t rows, int64_t col, int64_t cols);
Tensor rows(Tape& tape, const Tensor& x, int64_t begin, int64_t count);
Tensor column(Tape& tape, const Tensor& x, int64_t col, int64_t row_begin, int64_t count);  // (count, 1)
Tensor place(Tape& tape, const Tensor& x, int64_t rows, int64_t cols, int64_t row, int64_t col);

// y_i = x_{index_i}, and its reverse y_j = sum of x_i over index_i = j, y (rows, 1). x is (n, 1); index must live as
// long as the step.
Tensor gather(Tape& tape, const Tensor& x, Vec<const int32_t> index);
Tensor scatter(Tape& tape, const Tensor& x, Vec<const int32_t> index, int64_t rows);

// --- Fused functions, first order: one kernel op each. Losses are (1, 1). The networks are in layers.h ---

Tensor row_normalise(Tape& tape, const Tensor& v);  // z_i = v_i / |v_i|

Tensor bce(Tape& tape, const Tensor& logits, int64_t positives);  // positives first; logits (n, 1)

// v holds both sides of the pairs, (2n, d): rows 0..n-1 are v1, the others v2. w0: a parameter, (d, d).
struct InfoNceOptions {
  ScoreMetric metric = ScoreMetric::SoftplusGram;
  bool normalise = true;
  float inv_tau = 1;
};
Tensor infonce(Tape& tape, const Tensor& v, const Tensor& w0, const InfoNceOptions& options = {});

// The transport terms (transport.h) as functions of the potentials; cost, q and rewards are constants.
Tensor transport_joint(Tape& tape, const PairCost& cost, const Tensor& a, const Tensor& b, Vec<const float> q,
                       float eps);
Tensor transport_semidual(Tape& tape, const PairCost& cost, const Tensor& a, Vec<const float> q, float eps);
Tensor transport_chi2(Tape& tape, const PairCost& cost, const Tensor& a, const Tensor& b, Vec<const float> q,
                      float eps, Divergence divergence);
Tensor transport_paired(Tape& tape, const PairCost& cost, const Tensor& a, const Tensor& b, float eps,
                        Divergence divergence);

struct BellmanOptions {
  float init_weight;  // 1 - gamma
  float eps;
  Divergence divergence = Divergence::Kl;
};
Tensor bellman(Tape& tape, const Tensor& v, const Tensor& v_next, const Tensor& u, Vec<const float> discount,
               const Tensor& v_init, const BellmanOptions& options);

Tensor policy_nll(Tape& tape, const Tensor& head, Mat<const float> action, Vec<const float> weight);

}  // namespace pwdice
