// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "policy_nll.h"

#include "backends.h"

namespace pwdice {
namespace {

void check(const char* op, Mat<const float> head, Mat<const float> action, Vec<const float> weight) {
  PWDICE_CHECK(action.rows > 0 && action.cols > 0,
               "{}: action is {} x {}, expected at least one row and column", op, action.rows, action.cols);
  PWDICE_CHECK(head.rows == action.rows && head.cols == 2 * action.cols,
               "{}: head is {} x {}, expected {} x {}", op, head.rows, head.cols, action.rows,
               2 * action.cols);
  PWDICE_CHECK(weight.size == action.rows, "{}: weight has {} values, action has {} rows", op, weight.size,
               action.rows);
}

}  // namespace

size_t policy_nll_scratch_bytes(int64_t n) {
  return Scratch::rounded(static_cast<size_t>((n + kPolicyRows - 1) / kPolicyRows) * sizeof(double));
}

void policy_nll_forward(Context& ctx, const PolicyNllForward& op) {
  check("policy_nll_forward", op.head, op.action, op.weight);
  PWDICE_CHECK(op.log_prob.size == op.action.rows,
               "policy_nll_forward: log_prob has {} values, action has {} rows", op.log_prob.size,
               op.action.rows);
  PWDICE_CHECK(op.loss.size == 1, "policy_nll_forward: loss has {} values, expected 1", op.loss.size);
  ctx.on_gpu() ? cuda::policy_nll_forward(ctx, op) : cpu::policy_nll_forward(ctx, op);
}

void policy_nll_backward(Context& ctx, const PolicyNllBackward& op) {
  check("policy_nll_backward", op.head, op.action, op.weight);
  PWDICE_CHECK(op.d_loss.size == 1, "policy_nll_backward: d_loss has {} values, expected 1", op.d_loss.size);
  PWDICE_CHECK(op.d_head.rows == op.head.rows && op.d_head.cols == op.head.cols,
               "policy_nll_backward: d_head is {} x {}, head is {} x {}", op.d_head.rows, op.d_head.cols,
               op.head.rows, op.head.cols);
  ctx.on_gpu() ? cuda::policy_nll_backward(ctx, op) : cpu::policy_nll_backward(ctx, op);
}

}  // namespace pwdice
