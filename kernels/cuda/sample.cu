// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Draws of a training step, by the functions of philox.h: a value depends on (seed, stream, step, i) alone,
// never on the launch shape. `step` is read on the device, so a replayed graph draws anew.
#include "launch.cuh"

namespace pwdice::cuda {
namespace {

__global__ void __launch_bounds__(Each::kThreads) sample_uniform_kernel(SampleUniform op) {
  const uint64_t step = op.step[0], population = static_cast<uint64_t>(op.population);
  for_each_item(op.index.size, [&](int64_t i) {
    op.index[i] = draw_uniform(op.stream, step, static_cast<uint64_t>(i), population);
  });
}

__global__ void __launch_bounds__(Each::kThreads) sample_shuffled_kernel(SampleShuffled op) {
  const uint64_t population = static_cast<uint64_t>(op.population);
  const uint64_t first = op.step[0] * static_cast<uint64_t>(op.index.size);
  for_each_item(op.index.size, [&](int64_t i) {
    const uint64_t count = first + static_cast<uint64_t>(i), pass = count / population;
    op.index[i] = static_cast<int32_t>(pass_order(op.stream, pass, population)(count - pass * population));
  });
}

__global__ void __launch_bounds__(Each::kThreads) sample_weighted_kernel(SampleWeighted op) {
  const uint64_t step = op.step[0];
  for_each_item(op.index.size, [&](int64_t i) {
    op.index[i] =
        draw_weighted(op.stream, step, static_cast<uint64_t>(i), op.cumulative.data, op.cumulative.size);
  });
}

__global__ void __launch_bounds__(Each::kThreads) sample_real_kernel(SampleReal op) {
  const uint64_t step = op.step[0];
  for_each_item(op.value.size,
                [&](int64_t i) { op.value[i] = draw_real(op.stream, step, static_cast<uint64_t>(i)); });
}

__global__ void advance_counter_kernel(Vec<uint64_t> step) { step[0] += 1; }

}  // namespace

void sample_uniform(Context& ctx, const SampleUniform& op) {
  if (op.index.size == 0) return;
  const Launch on(ctx, "sample_uniform");
  sample_uniform_kernel<<<on.grid(op.index.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void sample_shuffled(Context& ctx, const SampleShuffled& op) {
  if (op.index.size == 0) return;
  const Launch on(ctx, "sample_shuffled");
  sample_shuffled_kernel<<<on.grid(op.index.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void sample_weighted(Context& ctx, const SampleWeighted& op) {
  if (op.index.size == 0) return;
  const Launch on(ctx, "sample_weighted");
  sample_weighted_kernel<<<on.grid(op.index.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void sample_real(Context& ctx, const SampleReal& op) {
  if (op.value.size == 0) return;
  const Launch on(ctx, "sample_real");
  sample_real_kernel<<<on.grid(op.value.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void advance_counter(Context& ctx, Vec<uint64_t> step) {
  const Launch on(ctx, "advance_counter");
  advance_counter_kernel<<<1, 1, 0, on.stream()>>>(step);
  on.check();
}

}  // namespace pwdice::cuda
