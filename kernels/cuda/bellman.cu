// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The Bellman-flow term with its linear part, residuals over a data set, weights of behaviour cloning.
//   y_i = (v_i - discount_i v_next_i - u_i)/eps
//   L   = conjugate of y (conjugate.cuh) - init_weight mean(v_init)          s = the conjugate's slope
//   d_v_i = s_i    d_v_next_i = -discount_i s_i    d_u_i = -s_i    d_v_init = -init_weight / k
// Work     O(n): one block folds v_init, then y, and an elementwise kernel writes the gradients. y is
//          recomputed from its inputs rather than stored.
// Numerics y is float, IEEE division by eps. Kl is a logsumexp with a running maximum (lse.h) and p relative to it;
//          other sums are float over chunks of 8192 and double over the chunks; v_init is summed in double.
// Cost     Kl about 3 n exp, chi2 none; bellman loads 8 n floats and k, stores 3 n and k; the residual 4 n and n, the
//          weights 2 n and n. Bound by memory, for small n by its three launches.
#include "../bellman.h"
#include "conjugate.cuh"
#include "math.cuh"

namespace pwdice::cuda {
namespace {

struct FlowResidual {
  Vec<const float> v, v_next, u, discount;
  float eps;
  __device__ float operator()(int64_t i) const { return (v[i] - discount[i] * v_next[i] - u[i]) / eps; }
};

struct Load {
  Vec<const float> x;
  __device__ float operator()(int64_t i) const { return x[i]; }
};
struct StoreLinear {
  double scale;
  float* result;
  __device__ void operator()(double sum) const { *result = static_cast<float>(scale * sum); }
};
struct StoreMax {
  float* result;
  __device__ void operator()(float largest) const { *result = largest; }
};

__global__ void __launch_bounds__(Each::kThreads) bellman_kernel(Bellman op, const Lse* total) {
  const int64_t n = op.v.size, k = op.v_init.size;
  const FlowResidual y{op.v, op.v_next, op.u, op.discount, op.eps};
  const float inv_n = 1.f / static_cast<float>(n);
  for_each_item(n > k ? n : k, [&](int64_t i) {
    if (i < n) {
      const float s = slope(op.divergence, y(i), total, inv_n);
      op.d_v[i] = s;
      op.d_v_next[i] = -op.discount[i] * s;
      op.d_u[i] = -s;
    }
    if (i < k) op.d_v_init[i] = -op.init_weight / static_cast<float>(k);
  });
}

__global__ void __launch_bounds__(Each::kThreads) bellman_residual_kernel(BellmanResidual op) {
  const FlowResidual y{op.v, op.v_next, op.u, op.discount, op.eps};
  for_each_item(op.y.size, [&](int64_t i) { op.y[i] = y(i); });
}

__global__ void __launch_bounds__(Each::kThreads)
    policy_weights_kernel(PolicyWeights op, const float* largest) {
  const float top = *largest;
  for_each_item(op.w.size, [&](int64_t i) {
    const float y = op.y[i];
    if (op.divergence == Divergence::Kl) {
      op.w[i] = expf(y - top);
    } else {
      const float shift = op.divergence == Divergence::Chi2Exact ? 1.f : 0.f;
      op.w[i] = top + shift <= 0.f ? 0.f : relu(y + shift) / (top + shift);
    }
  });
}

}  // namespace

void bellman(Context& ctx, const Bellman& op) {
  const Launch on(ctx, "bellman");
  const ScratchScope scope(ctx.scratch());
  Lse* total = on.scratch<Lse>(1);
  float* linear = on.scratch<float>(1);
  const int64_t n = op.v.size, k = op.v_init.size;
  fold_in_one_block<SumFold>(
      on, k, Load{op.v_init},
      StoreLinear{-static_cast<double>(op.init_weight) / static_cast<double>(k), linear});
  fold_conjugate(on, op.divergence, n, FlowResidual{op.v, op.v_next, op.u, op.discount, op.eps}, op.eps,
                 total, linear, op.loss);
  bellman_kernel<<<on.grid(std::max(n, k)), Each::kThreads, 0, on.stream()>>>(op, total);
  on.check();
}

void bellman_residual(Context& ctx, const BellmanResidual& op) {
  if (op.y.size == 0) return;
  const Launch on(ctx, "bellman_residual");
  bellman_residual_kernel<<<on.grid(op.y.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void policy_weights(Context& ctx, const PolicyWeights& op) {
  if (op.y.size == 0) return;
  const Launch on(ctx, "policy_weights");
  const ScratchScope scope(ctx.scratch());
  float* largest = on.scratch<float>(1);
  fold<MaxFold>(on, op.y.size, Load{op.y}, StoreMax{largest});
  policy_weights_kernel<<<on.grid(op.y.size), Each::kThreads, 0, on.stream()>>>(op, largest);
  on.check();
}

}  // namespace pwdice::cuda
