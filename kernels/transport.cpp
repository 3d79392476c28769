// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "transport.h"

#include <cmath>

#include "backends.h"
#include "check.h"
#include "finite.h"
#include "pair_check.h"

namespace pwdice {
namespace {

constexpr double kMassTolerance = 1e-3;

void check_pairs(const char* op, const PairCost& cost, Vec<const float> a, float eps) {
  check_cost(op, cost);
  PWDICE_CHECK(cost.x.rows > 0 && cost.y.rows > 0,
               "{}: {} states and {} expert states, expected at least 1 of each", op, cost.x.rows,
               cost.y.rows);
  check_vector(op, "a", a, cost.x.rows);
  check_positive(op, "eps", eps);
}

// Looking at the values of q would read back from a GPU, so there only the shape is checked.
void check_mass(const Context& ctx, const char* op, Vec<const float> q, int64_t m) {
  check_vector(op, "q", q, m);
  if (ctx.on_gpu()) return;
  double sum = 0;
  for (int64_t j = 0; j < m; ++j) {
    PWDICE_CHECK(q[j] >= 0, "{}: q is {} in row {}, expected a weight of at least 0", op, q[j], j);
    sum += static_cast<double>(q[j]);
  }
  PWDICE_CHECK(std::abs(sum - 1) <= kMassTolerance, "{}: the weights q sum to {}, expected 1", op, sum);
}

void check_chi2(const char* op, Divergence divergence) {
  check_choice(op, "divergence", divergence, Divergence::Chi2Exact);
  PWDICE_CHECK(divergence != Divergence::Kl, "{}: the divergence is KL; its op is transport_joint", op);
}

}  // namespace

void transport_joint(Context& ctx, const TransportJoint& op) {
  const char* name = "transport_joint";
  const int64_t n = op.cost.x.rows, m = op.cost.y.rows;
  check_pairs(name, op.cost, op.a, op.eps);
  check_vector(name, "b", op.b, m);
  check_mass(ctx, name, op.q, m);
  check_vector(name, "loss", op.loss, 1);
  check_vector(name, "d_a", op.d_a, n);
  check_vector(name, "d_b", op.d_b, m);
  ctx.on_gpu() ? cuda::transport_joint(ctx, op) : cpu::transport_joint(ctx, op);
  check_loss(ctx, name, op.loss,
             {{"x", op.cost.x}, {"y", op.cost.y}, {"reward", op.cost.reward}, {"a", op.a}, {"b", op.b}});
}

void transport_semidual(Context& ctx, const TransportSemidual& op) {
  const char* name = "transport_semidual";
  check_pairs(name, op.cost, op.a, op.eps);
  check_mass(ctx, name, op.q, op.cost.y.rows);
  check_vector(name, "loss", op.loss, 1);
  check_vector(name, "d_a", op.d_a, op.cost.x.rows);
  check_vector(name, "col_lse", op.col_lse, op.cost.y.rows);
  ctx.on_gpu() ? cuda::transport_semidual(ctx, op) : cpu::transport_semidual(ctx, op);
  check_loss(ctx, name, op.loss,
             {{"x", op.cost.x}, {"y", op.cost.y}, {"reward", op.cost.reward}, {"a", op.a}});
}

void transport_chi2(Context& ctx, const TransportChi2& op) {
  const char* name = "transport_chi2";
  const int64_t n = op.cost.x.rows, m = op.cost.y.rows;
  check_pairs(name, op.cost, op.a, op.eps);
  check_chi2(name, op.divergence);
  check_vector(name, "b", op.b, m);
  check_mass(ctx, name, op.q, m);
  check_vector(name, "loss", op.loss, 1);
  check_vector(name, "d_a", op.d_a, n);
  check_vector(name, "d_b", op.d_b, m);
  ctx.on_gpu() ? cuda::transport_chi2(ctx, op) : cpu::transport_chi2(ctx, op);
  check_loss(ctx, name, op.loss,
             {{"x", op.cost.x}, {"y", op.cost.y}, {"reward", op.cost.reward}, {"a", op.a}, {"b", op.b}});
}

void transport_paired(Context& ctx, const TransportPaired& op) {
  const char* name = "transport_paired";
  const int64_t n = op.cost.x.rows;
  check_pairs(name, op.cost, op.a, op.eps);
  check_choice(name, "divergence", op.divergence, Divergence::Chi2Exact);
  PWDICE_CHECK(op.cost.y.rows == n, "{}: x has {} rows, y has {}", name, n, op.cost.y.rows);
  check_vector(name, "b", op.b, n);
  check_vector(name, "loss", op.loss, 1);
  check_vector(name, "d_a", op.d_a, n);
  check_vector(name, "d_b", op.d_b, n);
  ctx.on_gpu() ? cuda::transport_paired(ctx, op) : cpu::transport_paired(ctx, op);
  check_loss(ctx, name, op.loss,
             {{"x", op.cost.x}, {"y", op.cost.y}, {"reward", op.cost.reward}, {"a", op.a}, {"b", op.b}});
}

void column_lse(Context& ctx, const ColumnLse& op) {
  const char* name = "column_lse";
  check_pairs(name, op.cost, op.a, op.eps);
  check_vector(name, "col_lse", op.col_lse, op.cost.y.rows);
  ctx.on_gpu() ? cuda::column_lse(ctx, op) : cpu::column_lse(ctx, op);
  check_values(ctx, name, "col_lse", op.col_lse,
               {{"x", op.cost.x}, {"y", op.cost.y}, {"reward", op.cost.reward}, {"a", op.a}});
}

size_t transport_scratch_bytes(const Context& ctx, int64_t n, int64_t m, int64_t d) {
  check_pair_sizes("transport_scratch_bytes", n, m, d);
  return ctx.on_gpu() ? cuda::transport_scratch_bytes(n, m, d)
                      : cpu::transport_scratch_bytes(ctx.threads(), n, m, d);
}

size_t column_lse_scratch_bytes(const Context& ctx, int64_t n, int64_t m, int64_t d) {
  check_pair_sizes("column_lse_scratch_bytes", n, m, d);
  return ctx.on_gpu() ? cuda::transport_scratch_bytes(n, m, d)
                      : cpu::column_lse_scratch_bytes(ctx.threads(), m, d);
}

}  // namespace pwdice
