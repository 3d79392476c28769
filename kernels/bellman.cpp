// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "bellman.h"

#include <cmath>

#include "backends.h"
#include "check.h"
#include "cpu/divergence_plan.h"
#include "finite.h"

namespace pwdice {

void bellman(Context& ctx, const Bellman& op) {
  const char* name = "bellman";
  const int64_t n = op.v.size, k = op.v_init.size;
  PWDICE_CHECK(n > 0 && k > 0, "{}: {} transitions and {} initial states, expected at least 1 of each", name,
               n, k);
  check_positive(name, "eps", op.eps);
  check_choice(name, "divergence", op.divergence, Divergence::Chi2Exact);
  PWDICE_CHECK(std::isfinite(op.init_weight), "{}: init_weight is {}, expected a finite number", name,
               op.init_weight);
  check_vector(name, "v", op.v, n);
  check_vector(name, "v_next", op.v_next, n);
  check_vector(name, "u", op.u, n);
  check_vector(name, "discount", op.discount, n);
  check_vector(name, "v_init", op.v_init, k);
  check_vector(name, "loss", op.loss, 1);
  check_vector(name, "d_v", op.d_v, n);
  check_vector(name, "d_v_next", op.d_v_next, n);
  check_vector(name, "d_u", op.d_u, n);
  check_vector(name, "d_v_init", op.d_v_init, k);
  // Where it is infinite p may be zero, the loss finite and the gradient 0 times infinity.
  check_finite(ctx, name, {{"discount", op.discount}});
  ctx.on_gpu() ? cuda::bellman(ctx, op) : cpu::bellman(ctx, op);
  check_loss(
      ctx, name, op.loss,
      {{"v", op.v}, {"v_next", op.v_next}, {"u", op.u}, {"discount", op.discount}, {"v_init", op.v_init}});
}

void bellman_residual(Context& ctx, const BellmanResidual& op) {
  const char* name = "bellman_residual";
  const int64_t n = op.v.size;
  check_positive(name, "eps", op.eps);
  check_vector(name, "v", op.v, n);
  check_vector(name, "v_next", op.v_next, n);
  check_vector(name, "u", op.u, n);
  check_vector(name, "discount", op.discount, n);
  check_vector(name, "y", op.y, n);
  if (n == 0) return;
  ctx.on_gpu() ? cuda::bellman_residual(ctx, op) : cpu::bellman_residual(ctx, op);
  check_values(ctx, name, "y", op.y,
               {{"v", op.v}, {"v_next", op.v_next}, {"u", op.u}, {"discount", op.discount}});
}

void policy_weights(Context& ctx, const PolicyWeights& op) {
  const char* name = "policy_weights";
  check_vector(name, "y", op.y, op.y.size);
  check_vector(name, "w", op.w, op.y.size);
  check_choice(name, "divergence", op.divergence, Divergence::Chi2Exact);
  if (op.y.size == 0) return;
  ctx.on_gpu() ? cuda::policy_weights(ctx, op) : cpu::policy_weights(ctx, op);
}

// A GPU keeps two totals instead.
size_t bellman_scratch_bytes(int64_t n) {
  check_size("bellman_scratch_bytes", "the number of transitions", n);
  return cpu::divergence_bytes(n) + 2 * Scratch::kAlign;
}

}  // namespace pwdice
