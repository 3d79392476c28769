// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "bce.h"

#include "backends.h"

namespace pwdice {
namespace {

void check_positives(const char* op, int64_t positives, int64_t n) {
  PWDICE_CHECK(positives > 0 && positives < n,
               "{}: {} of {} logits are positives, expected at least one of each kind", op, positives, n);
}

}  // namespace

// A short last chunk of each half.
size_t bce_scratch_bytes(int64_t n) {
  return Scratch::rounded(static_cast<size_t>(n / kBceChunk + 2) * sizeof(double));
}

void bce_forward(Context& ctx, const BceForward& op) {
  check_positives("bce_forward", op.positives, op.logits.size);
  PWDICE_CHECK(op.loss.size == 1, "bce_forward: loss has {} values, expected 1", op.loss.size);
  ctx.on_gpu() ? cuda::bce_forward(ctx, op) : cpu::bce_forward(ctx, op);
}

void bce_backward(Context& ctx, const BceBackward& op) {
  check_positives("bce_backward", op.positives, op.logits.size);
  PWDICE_CHECK(op.d_loss.size == 1, "bce_backward: d_loss has {} values, expected 1", op.d_loss.size);
  PWDICE_CHECK(op.d_logits.size == op.logits.size, "bce_backward: d_logits has {} values, logits has {}",
               op.d_logits.size, op.logits.size);
  ctx.on_gpu() ? cuda::bce_backward(ctx, op) : cpu::bce_backward(ctx, op);
}

}  // namespace pwdice
