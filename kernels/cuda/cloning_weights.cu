// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The weights of behaviour cloning without a way to the host.
//   means      a thread owns a transition; its neighbours read nearly the same logarithms, so all but the first come
//              from L1
//   balance    a block owns a step (and strides over steps): the values lie one after another in scratch, and the cut is
//              found by bisection on the bits of a float, 31 sums over them
// Cost     n lookahead additions; n reads at random, 32 n in a row.
// Numerics v relative to its step's largest; sums in double, lanes and warps in fixed order: same bits every run.
#include "../cloning_cut.h"
#include "math.cuh"
#include "reduce.cuh"

namespace pwdice::cuda {
namespace {

struct Step {
  static constexpr int kThreads = 256;
};

// The fold over a block, in every thread.
template <class Fold, class T>
__device__ T fold_to_all(T v) {
  __shared__ T result;
  v = block_fold<Fold, Step::kThreads>(v);
  if (threadIdx.x == 0) result = v;
  __syncthreads();
  v = result;
  __syncthreads();  // the next fold writes the same places
  return v;
}

__global__ void __launch_bounds__(Each::kThreads) cloning_logs_kernel(Vec<const float> w, float* log_w) {
  for_each_item(w.size, [&](int64_t i) { log_w[i] = cloning_log(w[i]); });
}

__global__ void __launch_bounds__(Each::kThreads)
    cloning_means_kernel(CloningWeights op, const float* log_w, float* mean) {
  for_each_item(op.w.size, [&](int64_t i) { mean[i] = cloning_mean(log_w, i, cloning_horizon(op, i)); });
}

__device__ void balance_step(const CloningWeights& op, int64_t begin, int64_t end, const float* mean,
                             float* v) {
  float top = -INFINITY;
  for (int64_t k = begin + threadIdx.x; k < end; k += Step::kThreads)
    top = MaxFold::join(mean[op.order[k]], top);
  top = fold_to_all<MaxFold>(top);
  for (int64_t k = begin + threadIdx.x; k < end; k += Step::kThreads)
    v[k] = cloning_value(mean[op.order[k]], top, op.power);
  const auto sum_of = [&](auto value) {  // every thread reads what it wrote
    double sum = 0.0;
    for (int64_t k = begin + threadIdx.x; k < end; k += Step::kThreads)
      sum += static_cast<double>(value(v[k]));
    return fold_to_all<SumFold>(sum);
  };
  const auto mass_from = [&](float t) {
    return sum_of([&](float value) { return value >= t ? value : 0.f; });
  };
  const float cut = cloning_cut(static_cast<double>(op.cap) * mass_from(0.f), mass_from);
  const double total = sum_of([&](float value) { return value > cut ? cut : value; });
  for (int64_t k = begin + threadIdx.x; k < end; k += Step::kThreads) {
    const float kept = v[k] > cut ? cut : v[k];
    op.w[op.order[k]] = total == 0.0 ? 0.f : static_cast<float>(static_cast<double>(kept) / total);
  }
}

__global__ void __launch_bounds__(Step::kThreads)
    cloning_balance_kernel(CloningWeights op, const float* mean, float* v) {
  for (int64_t t = blockIdx.x; t + 1 < op.step_begin.size; t += gridDim.x)
    balance_step(op, op.step_begin[t], op.step_begin[t + 1], mean, v);
}

__global__ void __launch_bounds__(Each::kThreads)
    cloning_values_kernel(CloningWeights op, const float* mean, const float* top) {
  for_each_item(op.w.size, [&](int64_t i) { op.w[i] = cloning_value(mean[i], *top, op.power); });
}

__global__ void __launch_bounds__(Each::kThreads) cloning_scale_kernel(Vec<float> w, const float* top) {
  for_each_item(w.size, [&](int64_t i) { w[i] = *top == 0.f ? 1.f : w[i] / *top; });
}

// w = v, not yet divided by the largest.
void shape(const Launch& on, const CloningWeights& op, Vec<float> top) {
  const int64_t n = op.w.size;
  float* mean = on.scratch<float>(n);
  float* v = on.scratch<float>(n);
  cloning_logs_kernel<<<on.grid(n), Each::kThreads, 0, on.stream()>>>(op.w, v);
  on.check();
  cloning_means_kernel<<<on.grid(n), Each::kThreads, 0, on.stream()>>>(op, v, mean);
  on.check();
  if (op.balanced) {
    if (const int64_t steps = op.step_begin.size - 1; steps > 0) {
      cloning_balance_kernel<<<chunk_blocks(steps), Step::kThreads, 0, on.stream()>>>(op, mean, v);
      on.check();
    }
  } else {
    cuda::reduce_max(on.ctx(), {{mean, n}, top});
    cloning_values_kernel<<<on.grid(n), Each::kThreads, 0, on.stream()>>>(op, mean, top.data);
    on.check();
  }
}

}  // namespace

void cloning_weights(Context& ctx, const CloningWeights& op) {
  const Launch on(ctx, "cloning_weights");
  const ScratchScope scope(ctx.scratch());
  const Vec<float> top{on.scratch<float>(1), 1};
  if (!op.changes_nothing()) shape(on, op, top);
  cuda::reduce_max(ctx, {op.w, top});
  cloning_scale_kernel<<<on.grid(op.w.size), Each::kThreads, 0, on.stream()>>>(op.w, top.data);
  on.check();
}

}  // namespace pwdice::cuda
