// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "activation.h"

#include "backends.h"
#include "check.h"

namespace pwdice {

void activation_backward(Context& ctx, const ActivationBackward& op) {
  const char* name = "activation_backward";
  check_matrix(name, "y", op.y, op.y.rows, op.y.cols);
  check_matrix(name, "d_y", op.d_y, op.y.rows, op.y.cols);
  check_matrix(name, "d_pre", op.d_pre, op.y.rows, op.y.cols);
  check_choice(name, "act", op.act, Activation::Tanh);
  if (op.y.size() == 0) return;
  ctx.on_gpu() ? cuda::activation_backward(ctx, op) : cpu::activation_backward(ctx, op);
}

}  // namespace pwdice
