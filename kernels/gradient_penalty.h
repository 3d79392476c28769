// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "activation.h"

namespace pwdice {

// P = lambda/n sum_k (|g_k| - 1)^2,  g_k = gradient of the scalar network D at x_k, for
//   h1 = f(W1 x + b1), h2 = f(W2 h1 + b2), D = w3 . h2 + b3        (f = tanh or ReLU; P does not see b3)
// with f1 = f'(h1), f2 = f'(h2):  u2 = f2 w3;  u1 = f1 (W2^T u2);  g = W1^T u1
//
// and its gradient with respect to the parameters, a second derivative of the network, written out. Both come from one
// call, so that what they share never leaves a backend's cache.
//   r = 2 lambda/n (|g| - 1) g/|g|  (0 where |g| = 0)
//   d_W1 = u1^T r + a1^T x    d_W2 = u2^T q + a2^T h1    d_w3 = sum m f2    d_b1 = sum a1    d_b2 = sum a2
//   p = r W1^T   q = p f1   m = q W2^T
//   a2 = m w3 f''(h2)         a1 = f1 (a2 W2) + p (W2^T u2) f''(h1)      f'' = -2 h (1 - h^2) for tanh, 0 for ReLU
struct GradientPenalty {
  Mat<const float> x;       // (n, d)
  Mat<const float> w1, w2;  // (m, d), (m, m)
  Vec<const float> b1, b2;  // (m)
  Vec<const float> w3;      // (m)
  Activation act;
  float lambda;
  Vec<float> norm;        // out (n): |g_k|
  Vec<float> loss;        // out (1): P
  Mat<float> d_w1, d_w2;  // out, of P
  Vec<float> d_b1, d_b2, d_w3;
};
void gradient_penalty(Context& ctx, const GradientPenalty& op);

size_t gradient_penalty_scratch_bytes(const Context& ctx, int64_t n, int64_t d, int64_t m);

}  // namespace pwdice
