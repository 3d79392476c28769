// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "gradient_penalty.h"

#include <algorithm>

#include "backends.h"
#include "check.h"
#include "cpu/mlp.h"

namespace pwdice {
namespace {

struct Shape {
  int64_t n, d, m;  // rows, inputs, hidden units
};

template <class Op>
Shape check_network(const char* name, const Op& op) {
  const Shape s{op.x.rows, op.x.cols, op.w1.rows};
  PWDICE_CHECK(s.n > 0 && s.d > 0 && s.m > 0,
               "{}: x is {} x {} and w1 has {} rows, expected at least 1 of each", name, s.n, s.d, s.m);
  PWDICE_CHECK(op.act == Activation::Tanh || op.act == Activation::Relu,
               "{}: the activation is neither Tanh nor Relu", name);
  check_matrix(name, "x", op.x, s.n, s.d);
  check_matrix(name, "w1", op.w1, s.m, s.d);
  check_matrix(name, "w2", op.w2, s.m, s.m);
  check_vector(name, "w3", op.w3, s.m);
  check_matrix(name, "h1", op.h1, s.n, s.m);
  check_matrix(name, "h2", op.h2, s.n, s.m);
  check_matrix(name, "v1", op.v1, s.n, s.m);
  check_matrix(name, "g", op.g, s.n, s.d);
  check_vector(name, "norm", op.norm, s.n);
  return s;
}

}  // namespace

void gradient_penalty_forward(Context& ctx, const GradientPenaltyForward& op) {
  const char* name = "gradient_penalty_forward";
  const Shape s = check_network(name, op);
  check_vector(name, "b1", op.b1, s.m);
  check_vector(name, "b2", op.b2, s.m);
  check_vector(name, "loss", op.loss, 1);
  ctx.on_gpu() ? cuda::gradient_penalty_forward(ctx, op) : cpu::gradient_penalty_forward(ctx, op);
}

void gradient_penalty_backward(Context& ctx, const GradientPenaltyBackward& op) {
  const char* name = "gradient_penalty_backward";
  const Shape s = check_network(name, op);
  check_vector(name, "d_loss", op.d_loss, 1);
  check_matrix(name, "d_w1", op.d_w1, s.m, s.d);
  check_matrix(name, "d_w2", op.d_w2, s.m, s.m);
  check_vector(name, "d_b1", op.d_b1, s.m);
  check_vector(name, "d_b2", op.d_b2, s.m);
  check_vector(name, "d_w3", op.d_w3, s.m);
  ctx.on_gpu() ? cuda::gradient_penalty_backward(ctx, op) : cpu::gradient_penalty_backward(ctx, op);
}

size_t gradient_penalty_scratch_bytes(const Context& ctx, int64_t n, int64_t d, int64_t m) {
  return ctx.on_gpu() ? cuda::gradient_penalty_scratch_bytes(n, d, m)
                      : cpu::gradient_penalty_scratch_bytes(ctx.threads(), n, d, m);
}

}  // namespace pwdice
