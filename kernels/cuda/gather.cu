// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// to_i = from_{index_i}. Consecutive threads take consecutive elements of the output, so stores are full
// lines and loads are whole rows. PWDICE_CHECK_INDEX builds trap on an index out of range.
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

void gather_indices(Context& ctx, const GatherIndices& op) {
  if (op.to.size == 0) return;
  const Launch on(ctx, "gather_indices");
  gather_indices_kernel<<<on.grid(op.to.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

}  // namespace pwdice::cuda
