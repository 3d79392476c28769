// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// d_pre = d_y * f'(pre), f' through the saved y: None 1, Relu 1[y > 0], Tanh 1 - y^2.
#include "launch.cuh"
#include "math.cuh"

namespace pwdice::cuda {
namespace {

__global__ void __launch_bounds__(Each::kThreads) activation_backward_kernel(ActivationBackward op) {
  for_each_element(op.y.rows, op.y.cols, [&](int64_t i, int64_t j) {
    op.d_pre(i, j) = through(op.act, op.y(i, j), op.d_y(i, j));
  });
}

}  // namespace

void activation_backward(Context& ctx, const ActivationBackward& op) {
  if (op.y.size() == 0) return;
  const Launch on(ctx, "activation_backward");
  activation_backward_kernel<<<on.grid(op.y.size()), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

}  // namespace pwdice::cuda
