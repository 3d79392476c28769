// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cmath>

#include "context.h"

namespace pwdice {

// Adam over one flat buffer, weight decay added to the gradient (not decoupled):
//   t += 1   g' = scale g + weight_decay p   m = b1 m + (1-b1) g'   v = b2 v + (1-b2) g'^2
//   p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
// With ok = 0 nothing changes, t included: a step whose loss or gradient is not finite leaves the parameters
// of the step before, with no read-back on a GPU.
struct Adam {
  float beta1, beta2, eps, weight_decay;
  Vec<const float> lr;     // (1), in the backend's memory so that a captured step can follow a schedule
  Vec<const float> scale;  // (1), the factor of clip_scale, or 1
  Vec<const float> ok;     // (1), the flag of all_finite
  Vec<int64_t> t;          // in and out (1)
  Vec<const float> grad;   // (n)
  Vec<float> param, m, v;  // in and out (n)
};
void adam(Context& ctx, const Adam& op);

// The scalars of step t, for both backends. In double from the float betas, so that v / (1 - b2^t) is exactly g'^2
// in the first step.
struct AdamFactors {
  float scale, weight_decay, beta1, beta2, one_minus_beta1, one_minus_beta2;
  float step;           // lr / (1 - b1^t)
  float inverse_root2;  // 1 / sqrt(1 - b2^t)
  float eps;
};
PWDICE_HD inline AdamFactors adam_factors(const Adam& op, float lr, float scale, int64_t t) {
  const double b1 = op.beta1, b2 = op.beta2, steps = static_cast<double>(t);
  return {scale,
          op.weight_decay,
          op.beta1,
          op.beta2,
          static_cast<float>(1 - b1),
          static_cast<float>(1 - b2),
          static_cast<float>(lr / (1 - std::pow(b1, steps))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(b2, steps))),
          op.eps};
}

// Global-norm clipping: norm = |grad|, scale = min(1, max_norm / (norm + 1e-6)). The scaling itself is adam's.
// Scratch: reduce_scratch_bytes(grad.size).
struct ClipScale {
  Vec<const float> grad;
  float max_norm;
  Vec<float> norm, scale;  // out (1)
};
void clip_scale(Context& ctx, const ClipScale& op);

// average = decay average + (1 - decay) param; unchanged when ok = 0.
struct Ema {
  float decay;
  Vec<const float> ok;  // (1)
  Vec<const float> param;
  Vec<float> average;  // in and out
};
void ema(Context& ctx, const Ema& op);

}  // namespace pwdice
