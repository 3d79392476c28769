// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "linear.h"

#include <algorithm>

#include "backends.h"
#include "check.h"
#include "cpu/gemm.h"

namespace pwdice {
namespace {

// The shapes are those of w (or d_w) and of the number of rows; the rest has to agree.
void check_layer(const char* op, int64_t n, int64_t in, int64_t out) {
  PWDICE_CHECK(n >= 0, "{}: the batch has {} rows", op, n);
  PWDICE_CHECK(in > 0 && out > 0, "{}: a layer with {} inputs and {} outputs computes nothing", op, in, out);
}

}  // namespace

void linear_forward(Context& ctx, const LinearForward& op) {
  const char* name = "linear_forward";
  const int64_t n = op.x.rows, in = op.w.cols, out = op.w.rows;
  check_layer(name, n, in, out);
  PWDICE_CHECK(op.x.cols == in, "{}: x has {} columns, w expects {}", name, op.x.cols, in);
  check_matrix(name, "x", op.x, n, in);
  check_matrix(name, "w", op.w, out, in);
  check_vector(name, "b", op.b, out);
  check_choice(name, "act", op.act, Activation::Tanh);
  check_matrix(name, "y", op.y, n, out);
  if (n == 0) return;
  ctx.on_gpu() ? cuda::linear_forward(ctx, op) : cpu::linear_forward(ctx, op);
}

void linear_backward_input(Context& ctx, const LinearBackwardInput& op) {
  const char* name = "linear_backward_input";
  const int64_t n = op.d_pre.rows, in = op.w.cols, out = op.w.rows;
  check_layer(name, n, in, out);
  PWDICE_CHECK(op.d_pre.cols == out, "{}: d_pre has {} columns, w has {} rows", name, op.d_pre.cols, out);
  check_matrix(name, "d_pre", op.d_pre, n, out);
  check_matrix(name, "w", op.w, out, in);
  check_matrix(name, "x", op.x, n, in);
  check_matrix(name, "d_x", op.d_x, n, in);
  check_choice(name, "x_act", op.x_act, Activation::Tanh);
  if (n == 0) return;
  ctx.on_gpu() ? cuda::linear_backward_input(ctx, op) : cpu::linear_backward_input(ctx, op);
}

void linear_backward_params(Context& ctx, const LinearBackwardParams& op) {
  const char* name = "linear_backward_params";
  const int64_t n = op.d_pre.rows, in = op.x.cols, out = op.d_pre.cols;
  check_layer(name, n, in, out);
  PWDICE_CHECK(op.x.rows == n, "{}: x has {} rows, d_pre has {}", name, op.x.rows, n);
  check_matrix(name, "d_pre", op.d_pre, n, out);
  check_matrix(name, "x", op.x, n, in);
  check_matrix(name, "d_w", op.d_w, out, in);
  check_vector(name, "d_b", op.d_b, out);
  ctx.on_gpu() ? cuda::linear_backward_params(ctx, op) : cpu::linear_backward_params(ctx, op);
}

size_t linear_scratch_bytes(int64_t n, int64_t in, int64_t out) {
  return std::max({cpu::gemm_panels_bytes(in, out), cpu::gemm_panels_bytes(out, in),
                   cpu::gemm_columns_bytes(out, in), cuda::linear_scratch_bytes(n, in, out)});
}

}  // namespace pwdice
