// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Binary cross entropy on logits, positives first:
//   L = 1/p sum_{i < p} softplus(-h_i) + 1/(n-p) sum_{i >= p} softplus(h_i)
//   d_h_i = -g sigmoid(-h_i) / p  or  g sigmoid(h_i) / (n - p)
#include "math.cuh"
#include "reduce.cuh"

namespace pwdice::cuda {
namespace {

struct LoadTerm {
  Vec<const float> h;
  int64_t positives;
  __device__ float operator()(int64_t i) const {
    return i < positives ? softplus(-h[i]) / static_cast<float>(positives)
                         : softplus(h[i]) / static_cast<float>(h.size - positives);
  }
};

struct StoreLoss {
  Vec<float> loss;
  __device__ void operator()(double sum) const { loss[0] = static_cast<float>(sum); }
};

__global__ void __launch_bounds__(Each::kThreads) bce_backward_kernel(BceBackward op) {
  const float g = op.d_loss[0];
  for_each_item(op.logits.size, [&](int64_t i) {
    const float h = op.logits[i];
    op.d_logits[i] = i < op.positives ? -g * sigmoid(-h) / static_cast<float>(op.positives)
                                      : g * sigmoid(h) / static_cast<float>(op.logits.size - op.positives);
  });
}

}  // namespace

void bce_forward(Context& ctx, const BceForward& op) {
  const Launch on(ctx, "bce_forward");
  fold<SumFold>(on, op.logits.size, LoadTerm{op.logits, op.positives}, StoreLoss{op.loss});
}

void bce_backward(Context& ctx, const BceBackward& op) {
  if (op.logits.size == 0) return;
  const Launch on(ctx, "bce_backward");
  bce_backward_kernel<<<on.grid(op.logits.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

}  // namespace pwdice::cuda
