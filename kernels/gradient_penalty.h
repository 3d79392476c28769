// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "activation.h"

namespace pwdice {

// P = lambda/n sum_k (|g_k| - 1)^2,  g_k = gradient of the scalar network D at x_k, for
//   h1 = f(W1 x + b1), h2 = f(W2 h1 + b2), D = w3 . h2 + b3        (f = tanh or ReLU; P does not see b3)
// forward:  f1 = f'(h1), f2 = f'(h2);  u2 = f2 w3;  v1 = W2^T u2;  u1 = f1 v1;  g = W1^T u1
struct GradientPenaltyForward {
  Mat<const float> x;       // (n, d)
  Mat<const float> w1, w2;  // (m, d), (m, m)
  Vec<const float> b1, b2;  // (m)
  Vec<const float> w3;      // (m)
  Activation act;
  float lambda;
  Mat<float> h1, h2, v1;  // out (n, m), saved
  Mat<float> g;           // out (n, d), saved
  Vec<float> norm;        // out (n), saved: |g_k|
  Vec<float> loss;        // out (1)
};
void gradient_penalty_forward(Context& ctx, const GradientPenaltyForward& op);

// The gradient of P with respect to the parameters: a second derivative of the network, written out.
//   r = 2 lambda/n (|g| - 1) g/|g|  (0 where |g| = 0)
//   d_W1 = u1^T r + a1^T x    d_W2 = u2^T q + a2^T h1    d_w3 = sum m f2    d_b1 = sum a1    d_b2 = sum a2
//   p = r W1^T   e1 = p v1   q = p f1   m = q W2^T   e2 = m w3
//   a2 = f''(h2) e2          a1 = f1 (a2 W2) + f''(h1) e1      f'' = -2 h (1 - h^2) for tanh, 0 for ReLU
struct GradientPenaltyBackward {
  Mat<const float> x, w1, w2;
  Vec<const float> w3;
  Activation act;
  float lambda;
  Mat<const float> h1, h2, v1, g;
  Vec<const float> norm;
  Vec<const float> d_loss;  // (1)
  Mat<float> d_w1, d_w2;    // out
  Vec<float> d_b1, d_b2, d_w3;
};
void gradient_penalty_backward(Context& ctx, const GradientPenaltyBackward& op);

size_t gradient_penalty_scratch_bytes(const Context& ctx, int64_t n, int64_t d,
                                      int64_t m);  // enough for both

}  // namespace pwdice
