// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "cloning_weights.h"

#include "backends.h"
#include "check.h"

namespace pwdice {

void cloning_weights(Context& ctx, const CloningWeights& op) {
  const char* name = "cloning_weights";
  const int64_t n = op.w.size;
  PWDICE_CHECK(op.lookahead >= 1, "{}: looks {} transitions ahead, expected at least 1", name, op.lookahead);
  PWDICE_CHECK(op.power > 0, "{}: power is {}, expected a positive number", name, op.power);
  PWDICE_CHECK(op.cap >= 0 && op.cap <= 1, "{}: cap is {}, expected a share between 0 and 1", name, op.cap);
  check_vector(name, "w", op.w, n);
  if (op.lookahead > 1) check_vector(name, "end", op.end, n);
  if (op.balanced) {
    check_vector(name, "order", op.order, n);
    PWDICE_CHECK(op.step_begin.size >= 1, "{}: step_begin is empty", name);
    check_vector(name, "step_begin", op.step_begin, op.step_begin.size);
  }
  if (n == 0) return;
  ctx.on_gpu() ? cuda::cloning_weights(ctx, op) : cpu::cloning_weights(ctx, op);
}

// The means, the weights step by step, the largest, and what finding it takes.
size_t cloning_weights_scratch_bytes(int64_t n) {
  return 2 * Scratch::rounded(static_cast<size_t>(n) * sizeof(float)) + Scratch::rounded(sizeof(float)) +
         reduce_scratch_bytes(n);
}

}  // namespace pwdice
