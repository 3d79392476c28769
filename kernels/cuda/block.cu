// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Blocks of matrices with row strides of their own: to = from, to += from.
#include "launch.cuh"

namespace pwdice::cuda {
namespace {

__global__ void __launch_bounds__(Each::kThreads) copy_block_kernel(CopyBlock op) {
  for_each_element(op.to.rows, op.to.cols, [&](int64_t i, int64_t j) { op.to(i, j) = op.from(i, j); });
}

__global__ void __launch_bounds__(Each::kThreads) add_block_kernel(AddBlock op) {
  for_each_element(op.to.rows, op.to.cols, [&](int64_t i, int64_t j) { op.to(i, j) += op.from(i, j); });
}

}  // namespace

void copy_block(Context& ctx, const CopyBlock& op) {
  if (op.to.size() == 0) return;
  const Launch on(ctx, "copy_block");
  copy_block_kernel<<<on.grid(op.to.size()), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void add_block(Context& ctx, const AddBlock& op) {
  if (op.to.size() == 0) return;
  const Launch on(ctx, "add_block");
  add_block_kernel<<<on.grid(op.to.size()), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

}  // namespace pwdice::cuda
