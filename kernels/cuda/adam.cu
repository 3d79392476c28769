// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Adam over the flat buffer, global-norm clipping, exponential average.
//   g' = scale g + weight_decay p   m = b1 m + (1-b1) g'   v = b2 v + (1-b2) g'^2
//   p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
// Work     t, lr, scale and ok are read on the device, so a captured step follows a schedule and skips an
//          update that is not finite without asking the host. t is advanced by a launch of its own: the
//          update's blocks must all see the same t.
// Cost     4 loads and 3 stores of n floats.
#include "reduce.cuh"

namespace pwdice::cuda {
namespace {

__global__ void __launch_bounds__(Each::kThreads) adam_kernel(Adam op) {
  if (op.ok[0] == 0.f) return;
  __shared__ AdamFactors factors;  // two powers in double: one thread, not 256
  if (threadIdx.x == 0) factors = adam_factors(op, op.lr[0], op.scale[0], op.t[0] + 1);
  __syncthreads();
  const AdamFactors f = factors;
  for_each_item(op.param.size, [&](int64_t i) {
    const float p = op.param[i];
    const float g = f.scale * op.grad[i] + f.weight_decay * p;
    const float m = f.beta1 * op.m[i] + f.one_minus_beta1 * g;
    const float v = f.beta2 * op.v[i] + f.one_minus_beta2 * g * g;
    op.m[i] = m;
    op.v[i] = v;
    op.param[i] = p - f.step * m / (sqrtf(v) * f.inverse_root2 + f.eps);
  });
}

__global__ void advance_adam_kernel(Vec<int64_t> t, Vec<const float> ok) {
  if (ok[0] != 0.f) t[0] += 1;
}

__global__ void __launch_bounds__(Each::kThreads) ema_kernel(Ema op) {
  if (op.ok[0] == 0.f) return;
  for_each_item(op.average.size, [&](int64_t i) {
    op.average[i] = op.decay * op.average[i] + (1.f - op.decay) * op.param[i];
  });
}

struct LoadSquare {
  Vec<const float> x;
  __device__ float operator()(int64_t i) const { return x[i] * x[i]; }
};

struct StoreClip {
  float max_norm;
  Vec<float> norm, scale;
  __device__ void operator()(double sum) const {
    const float length = static_cast<float>(sqrt(sum));
    const float factor = max_norm / (length + 1e-6f);
    norm[0] = length;
    scale[0] = factor > 1.f ? 1.f : factor;  // NaN stays
  }
};

}  // namespace

void adam(Context& ctx, const Adam& op) {
  const Launch on(ctx, "adam");
  if (op.param.size > 0) {
    adam_kernel<<<on.grid(op.param.size), Each::kThreads, 0, on.stream()>>>(op);
    on.check();
  }
  advance_adam_kernel<<<1, 1, 0, on.stream()>>>(op.t, op.ok);
  on.check();
}

void clip_scale(Context& ctx, const ClipScale& op) {
  const Launch on(ctx, "clip_scale");
  fold<SumFold>(on, op.grad.size, LoadSquare{op.grad}, StoreClip{op.max_norm, op.norm, op.scale});
}

void ema(Context& ctx, const Ema& op) {
  if (op.average.size == 0) return;
  const Launch on(ctx, "ema");
  ema_kernel<<<on.grid(op.average.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

}  // namespace pwdice::cuda
