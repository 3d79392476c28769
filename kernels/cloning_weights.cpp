// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "cloning_weights.h"

#include <algorithm>
#include <utility>

#include "backends.h"
#include "check.h"
#include "finite.h"

namespace pwdice {
namespace {

void check_weights(Context& ctx, const char* op, Vec<const float> w) {
  check_finite(ctx, op, {{"w", w}});
  for (int64_t i = 0; i < w.size; ++i) {
    PWDICE_CHECK(w[i] >= 0, "{}: w is {} in row {}, expected a weight of at least 0", op, w[i], i);
  }
}

void check_ends(const char* op, Vec<const int32_t> end) {
  for (int64_t i = 0; i < end.size; ++i) {
    PWDICE_CHECK(end[i] > i && end[i] <= end.size, "{}: end is {} in row {}, expected {} to {}", op, end[i],
                 i, i + 1, end.size);
  }
}

void check_steps(Context& ctx, const char* op, Vec<const int32_t> order, Vec<const int32_t> begin) {
  const int64_t n = order.size, steps = begin.size - 1;
  PWDICE_CHECK(begin[0] == 0 && begin[steps] == n, "{}: step_begin runs from {} to {}, expected 0 to {}", op,
               begin[0], begin[steps], n);
  for (int64_t t = 0; t < steps; ++t) {
    PWDICE_CHECK(begin[t] <= begin[t + 1], "{}: step_begin falls from {} to {} after step {}", op, begin[t],
                 begin[t + 1], t);
  }
  const ScratchScope scope(ctx.scratch());
  float* const seen = ctx.scratch().take<float>(n, op);  // of the op's own scratch
  std::fill_n(seen, n, 0.f);
  for (int64_t k = 0; k < n; ++k) {
    PWDICE_CHECK(order[k] >= 0 && order[k] < n, "{}: order is {} in row {}, expected 0 to {}", op, order[k],
                 k, n - 1);
    PWDICE_CHECK(std::exchange(seen[order[k]], 1.f) == 0.f, "{}: order has transition {} twice", op,
                 order[k]);
  }
}

}  // namespace

void cloning_weights(Context& ctx, const CloningWeights& op) {
  const char* name = "cloning_weights";
  const int64_t n = op.w.size;
  PWDICE_CHECK(op.lookahead >= 1, "{}: looks {} transitions ahead, expected at least 1", name, op.lookahead);
  check_positive(name, "power", op.power);
  PWDICE_CHECK(op.cap >= 0 && op.cap <= 1, "{}: cap is {}, expected a share between 0 and 1", name, op.cap);
  check_vector(name, "w", op.w, n);
  if (op.lookahead > 1) check_vector(name, "end", op.end, n);
  if (op.balanced) {
    check_vector(name, "order", op.order, n);
    PWDICE_CHECK(op.step_begin.size >= 1, "{}: step_begin is empty", name);
    check_vector(name, "step_begin", op.step_begin, op.step_begin.size);
  }
  if (n == 0) return;
  if (!ctx.on_gpu()) {  // where looking does not read back
    check_weights(ctx, name, op.w);
    if (op.lookahead > 1) check_ends(name, op.end);
    if (op.balanced) check_steps(ctx, name, op.order, op.step_begin);
  }
  ctx.on_gpu() ? cuda::cloning_weights(ctx, op) : cpu::cloning_weights(ctx, op);
}

// The means, the weights step by step, the largest, and what finding it takes.
size_t cloning_weights_scratch_bytes(int64_t n) {
  return 2 * Scratch::rounded(static_cast<size_t>(n) * sizeof(float)) + Scratch::rounded(sizeof(float)) +
         reduce_scratch_bytes(n);
}

}  // namespace pwdice
