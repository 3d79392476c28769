// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cmath>

#include "context.h"

namespace pwdice {

// Binary cross entropy on logits, the discriminator's two means in one pass over positives | negatives:
//   L = 1/p sum_{i < p} softplus(-h_i) + 1/(n-p) sum_{i >= p} softplus(h_i)
struct BceForward {
  Vec<const float> logits;  // (n)
  int64_t positives;        // p, 0 < p < n
  Vec<float> loss;          // out (1)
};
void bce_forward(Context& ctx, const BceForward& op);

// d_h_i = -d_loss sigmoid(-h_i) / p  or  d_loss sigmoid(h_i) / (n - p)
struct BceBackward {
  Vec<const float> logits;
  int64_t positives;
  Vec<const float> d_loss;  // (1)
  Vec<float> d_logits;      // out (n)
};
void bce_backward(Context& ctx, const BceBackward& op);

// R = log sigmoid-ratio of the expert against the mixture the discriminator saw, alpha the expert's share in its
// negatives: the logit minus log(1 - alpha^2). The reference implementation's form, log s - log(1 - (1 + alpha) s)
// - log(1 - alpha) with s = sigmoid(logit)/(1 + alpha), is the same number and overflows where sigmoid saturates.
PWDICE_HD inline float discriminator_reward(float logit, float alpha) {
  return logit - log1pf(-alpha * alpha);
}

inline constexpr int64_t kBceChunk = 8192;  // logits per partial sum
size_t bce_scratch_bytes(int64_t n);

}  // namespace pwdice
