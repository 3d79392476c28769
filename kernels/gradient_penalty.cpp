// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "gradient_penalty.h"

#include "backends.h"
#include "check.h"
#include "cpu/mlp.h"
#include "finite.h"

namespace pwdice {

void gradient_penalty(Context& ctx, const GradientPenalty& op) {
  const char* name = "gradient_penalty";
  const int64_t n = op.x.rows, d = op.x.cols, m = op.w1.rows;
  PWDICE_CHECK(n > 0 && d > 0 && m > 0, "{}: x is {} x {} and w1 has {} rows, expected at least 1 of each",
               name, n, d, m);
  PWDICE_CHECK(op.act == Activation::Tanh || op.act == Activation::Relu,
               "{}: the activation is neither Tanh nor Relu", name);
  check_matrix(name, "x", op.x, n, d);
  check_matrix(name, "w1", op.w1, m, d);
  check_matrix(name, "w2", op.w2, m, m);
  check_vector(name, "b1", op.b1, m);
  check_vector(name, "b2", op.b2, m);
  check_vector(name, "w3", op.w3, m);
  check_vector(name, "norm", op.norm, n);
  check_vector(name, "loss", op.loss, 1);
  check_matrix(name, "d_w1", op.d_w1, m, d);
  check_matrix(name, "d_w2", op.d_w2, m, m);
  check_vector(name, "d_b1", op.d_b1, m);
  check_vector(name, "d_b2", op.d_b2, m);
  check_vector(name, "d_w3", op.d_w3, m);
  ctx.on_gpu() ? cuda::gradient_penalty(ctx, op) : cpu::gradient_penalty(ctx, op);
  check_loss(ctx, name, op.loss,
             {{"x", op.x}, {"w1", op.w1}, {"b1", op.b1}, {"w2", op.w2}, {"b2", op.b2}, {"w3", op.w3}});
}

size_t gradient_penalty_scratch_bytes(const Context& ctx, int64_t n, int64_t d, int64_t m) {
  return ctx.on_gpu() ? cuda::gradient_penalty_scratch_bytes(n, d, m)
                      : cpu::gradient_penalty_scratch_bytes(ctx.threads(), n, d, m);
}

}  // namespace pwdice
