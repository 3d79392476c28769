// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "pairwise_cost.h"

#include <cmath>

#include "backends.h"
#include "check.h"
#include "cpu/pair_plan.h"
#include "finite.h"
#include "pair_check.h"

namespace pwdice {

void check_cost(const char* op, const PairCost& cost) {
  PWDICE_CHECK(cost.x.cols > 0, "{}: states have {} columns, expected at least 1", op, cost.x.cols);
  PWDICE_CHECK(cost.y.cols == cost.x.cols, "{}: x has {} columns, y has {}", op, cost.x.cols, cost.y.cols);
  check_matrix(op, "x", cost.x, cost.x.rows, cost.x.cols);
  check_matrix(op, "y", cost.y, cost.y.rows, cost.x.cols);
  check_vector(op, "reward", cost.reward, cost.x.rows);
  check_choice(op, "distance", cost.distance, Distance::Indicator);
  PWDICE_CHECK(std::isfinite(cost.beta), "{}: beta is {}, expected a finite number", op, cost.beta);
}

void check_pair_sizes(const char* op, int64_t n, int64_t m, int64_t d) {
  check_size(op, "the number of states", n);
  check_size(op, "the number of expert states", m, 0, kMostColumns);
  check_size(op, "the number of columns", d, 1, kMostColumns);
}

void cost_matrix(Context& ctx, const CostMatrix& op) {
  const char* name = "cost_matrix";
  check_cost(name, op.cost);
  check_matrix(name, "c", op.c, op.cost.x.rows, op.cost.y.rows);
  if (op.c.size() == 0) return;
  ctx.on_gpu() ? cuda::cost_matrix(ctx, op) : cpu::cost_matrix(ctx, op);
}

void cost_paired(Context& ctx, const CostPaired& op) {
  const char* name = "cost_paired";
  check_cost(name, op.cost);
  PWDICE_CHECK(op.cost.x.rows == op.cost.y.rows, "{}: x has {} rows, y has {}", name, op.cost.x.rows,
               op.cost.y.rows);
  check_vector(name, "c", op.c, op.cost.x.rows);
  if (op.c.size == 0) return;
  ctx.on_gpu() ? cuda::cost_paired(ctx, op) : cpu::cost_paired(ctx, op);
  check_values(ctx, name, "c", op.c, {{"x", op.cost.x}, {"y", op.cost.y}, {"reward", op.cost.reward}});
}

size_t pair_cost_scratch_bytes(const Context& ctx, int64_t n, int64_t m, int64_t d) {
  check_pair_sizes("pair_cost_scratch_bytes", n, m, d);
  return cpu::pair_columns_bytes(m, d) + static_cast<size_t>(ctx.threads()) * cpu::pair_block_bytes(d) +
         Scratch::rounded(static_cast<size_t>(n) * sizeof(float));
}

}  // namespace pwdice
