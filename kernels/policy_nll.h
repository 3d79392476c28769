// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

// Weighted negative log-likelihood of a tanh-Gaussian policy; head = (mean | raw), columns 0..A-1 and A..2A-1:
//   logvar = 7 tanh(raw) - 3     x = atanh(clamp(a, +-(1 - 1e-6)))     a in [-1, 1], already unscaled
//   log pi = sum_k -1/2 (log 2pi + logvar + (x - mean)^2 exp(-logvar)) - sum_k log(1 - a^2 + 1e-10)
//   L = -1/n sum_i weight_i log pi_i
struct PolicyNllForward {
  Mat<const float> head;     // (n, 2A)
  Mat<const float> action;   // (n, A)
  Vec<const float> weight;   // (n)
  Vec<float> log_prob;       // out (n)
  Vec<float> loss;           // out (1)
};
void policy_nll_forward(Context& ctx, const PolicyNllForward& op);

// d_mean = -g (x - mean) exp(-logvar)      d_raw = g/2 (1 - (x - mean)^2 exp(-logvar)) 7 (1 - tanh(raw)^2)
// with g = d_loss weight_i / n
struct PolicyNllBackward {
  Mat<const float> head, action;
  Vec<const float> weight;
  Vec<const float> d_loss;  // (1)
  Mat<float> d_head;        // out (n, 2A)
};
void policy_nll_backward(Context& ctx, const PolicyNllBackward& op);

inline constexpr int64_t kPolicyRows = 512;  // rows per partial sum
size_t policy_nll_scratch_bytes(int64_t n);

}  // namespace pwdice
