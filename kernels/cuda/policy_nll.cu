// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Weighted negative log-likelihood of a tanh-Gaussian policy; head = (mean | raw):
//   logvar = 7 tanh(raw) - 3        x = atanh(clamp(a, +-(1 - 1e-6)))
//   log pi = sum_k -1/2 (log 2pi + logvar + (x - mean)^2 exp(-logvar)) - sum_k log(1 - a^2 + 1e-10)
//   L = -1/n sum_i weight_i log pi_i
//   d_mean = -g (x - mean) exp(-logvar)     d_raw = g/2 (1 - (x - mean)^2 exp(-logvar)) 7 (1 - tanh(raw)^2)
// Work     forward: a thread owns a row (there are 3 to 9 actions); backward: a thread owns an action.
// Numerics 1 - a^2 as (1 - a)(1 + a): no digits are lost where |a| is close to 1.
#include "reduce.cuh"

namespace pwdice::cuda {
namespace {

constexpr float kLogTwoPi = 1.83787707f;
constexpr float kAtanhBound =
    7.25432861f;  // atanh(1 - 1e-6); 1 - 1e-6 itself, as a float, would move it by 0.006

struct Gaussian {
  float x, deviation, precision, tanh_raw, logvar;  // deviation = x - mean, precision = exp(-logvar)
};

__device__ Gaussian gaussian(float mean, float raw, float action) {
  Gaussian g;
  const float x = atanhf(action);
  g.x = x > kAtanhBound ? kAtanhBound : (x < -kAtanhBound ? -kAtanhBound : x);  // NaN stays
  g.tanh_raw = tanhf(raw);
  g.logvar = 7.f * g.tanh_raw - 3.f;
  g.precision = expf(-g.logvar);
  g.deviation = g.x - mean;
  return g;
}

__global__ void __launch_bounds__(Each::kThreads) policy_nll_forward_kernel(PolicyNllForward op) {
  for_each_item(op.head.rows, [&](int64_t i) {
    const int64_t actions = op.action.cols;
    float log_prob = 0.f;
    for (int64_t k = 0; k < actions; ++k) {
      const float a = op.action(i, k);
      const Gaussian g = gaussian(op.head(i, k), op.head(i, actions + k), a);
      log_prob -= 0.5f * (kLogTwoPi + g.logvar + g.deviation * g.deviation * g.precision);
      log_prob -= logf((1.f - a) * (1.f + a) + 1e-10f);
    }
    op.log_prob[i] = log_prob;
  });
}

struct LoadWeighted {
  Vec<const float> weight, log_prob;
  __device__ float operator()(int64_t i) const { return weight[i] * log_prob[i]; }
};

struct StoreLoss {
  Vec<float> loss;
  int64_t n;
  __device__ void operator()(double sum) const {
    loss[0] = static_cast<float>(-sum / static_cast<double>(n));
  }
};

__global__ void __launch_bounds__(Each::kThreads) policy_nll_backward_kernel(PolicyNllBackward op) {
  const int64_t actions = op.action.cols;
  const float scale = op.d_loss[0] / static_cast<float>(op.head.rows);
  for_each_element(op.action.rows, actions, [&](int64_t i, int64_t k) {
    const Gaussian g = gaussian(op.head(i, k), op.head(i, actions + k), op.action(i, k));
    const float weight = scale * op.weight[i];
    const float pull = g.deviation * g.precision;
    op.d_head(i, k) = -weight * pull;
    op.d_head(i, actions + k) =
        0.5f * weight * (1.f - g.deviation * pull) * 7.f * (1.f - g.tanh_raw * g.tanh_raw);
  });
}

}  // namespace

void policy_nll_forward(Context& ctx, const PolicyNllForward& op) {
  const Launch on(ctx, "policy_nll_forward");
  const int64_t n = op.head.rows;
  if (n > 0) {
    policy_nll_forward_kernel<<<on.grid(n), Each::kThreads, 0, on.stream()>>>(op);
    on.check();
  }
  fold<SumFold>(on, n, LoadWeighted{op.weight, op.log_prob}, StoreLoss{op.loss, n});
}

void policy_nll_backward(Context& ctx, const PolicyNllBackward& op) {
  if (op.head.rows == 0) return;
  const Launch on(ctx, "policy_nll_backward");
  policy_nll_backward_kernel<<<on.grid(op.action.size()), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

}  // namespace pwdice::cuda
