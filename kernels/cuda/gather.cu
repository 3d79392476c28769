// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// to_i = from_{index_i}. Consecutive threads take consecutive elements of the output, so stores are full
// lines and loads are whole rows. PWDICE_CHECK_INDEX builds trap on an index out of range.
//
// to_j = sum of from_i over index_i = j. A thread owns one j and looks at the whole batch, which passes through
// shared memory: no atomics, the order and so the bits of the CPU. n N comparisons, for batches of some thousand.
#include "launch.cuh"

namespace pwdice::cuda {
namespace {

__device__ __forceinline__ int64_t checked(int32_t index, int64_t size) {
#ifdef PWDICE_CHECK_INDEX
  if (index < 0 || index >= size) __trap();
#else
  (void)size;
#endif
  return index;
}

__global__ void __launch_bounds__(Each::kThreads) gather_rows_kernel(GatherRows op) {
  for_each_element(op.to.rows, op.to.cols, [&](int64_t i, int64_t j) {
    op.to(i, j) = op.from(checked(op.index[i], op.from.rows), j);
  });
}

__global__ void __launch_bounds__(Each::kThreads) gather_values_kernel(GatherValues op) {
  for_each_item(op.to.size, [&](int64_t i) { op.to[i] = op.from[checked(op.index[i], op.from.size)]; });
}

__global__ void __launch_bounds__(Each::kThreads) scatter_values_kernel(ScatterValues op) {
  __shared__ int32_t index[Each::kThreads];
  __shared__ float value[Each::kThreads];
  const int64_t j = int64_t{blockIdx.x} * Each::kThreads + threadIdx.x;
  float sum = 0;
  for (int64_t begin = 0; begin < op.index.size; begin += Each::kThreads) {
    const int64_t left = op.index.size - begin;
    const int count = left < Each::kThreads ? static_cast<int>(left) : Each::kThreads;
    if (threadIdx.x < count) {
      index[threadIdx.x] = static_cast<int32_t>(checked(op.index[begin + threadIdx.x], op.to.size));
      value[threadIdx.x] = op.from[begin + threadIdx.x];
    }
    __syncthreads();
    for (int i = 0; i < count; ++i) {
      if (index[i] == j) sum += value[i];
    }
    __syncthreads();
  }
  if (j < op.to.size) op.to[j] = sum;
}

__global__ void __launch_bounds__(Each::kThreads) gather_indices_kernel(GatherIndices op) {
  for_each_item(op.to.size, [&](int64_t i) { op.to[i] = op.from[checked(op.index[i], op.from.size)]; });
}

}  // namespace

void gather_rows(Context& ctx, const GatherRows& op) {
  if (op.to.size() == 0) return;
  const Launch on(ctx, "gather_rows");
  gather_rows_kernel<<<on.grid(op.to.size()), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void gather_values(Context& ctx, const GatherValues& op) {
  if (op.to.size == 0) return;
  const Launch on(ctx, "gather_values");
  gather_values_kernel<<<on.grid(op.to.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void scatter_values(Context& ctx, const ScatterValues& op) {
  if (op.to.size == 0) return;
  const Launch on(ctx, "scatter_values");
  scatter_values_kernel<<<on.grid(op.to.size, Each::kThreads), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void gather_indices(Context& ctx, const GatherIndices& op) {
  if (op.to.size == 0) return;
  const Launch on(ctx, "gather_indices");
  gather_indices_kernel<<<on.grid(op.to.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

}  // namespace pwdice::cuda
