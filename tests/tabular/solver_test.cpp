// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <gtest/gtest.h>

#include <cmath>

#include "../../models/tabular/chi2.h"
#include "../../models/tabular/float32_dual.h"
#include "../../models/tabular/flow.h"
#include "../../models/tabular/lp.h"
#include "../../models/tabular/scaling.h"
#include "../../models/tabular/smodice.h"
#include "golden_case.h"

namespace pwdice::tabular {
namespace {

// eps1 -> 0, c = -R, eps2 = 1 turns PW-DICE into SMODICE-KL with the same reward; note the sign of the cost.
TEST(Solver, SmallEps1WithNegativeRewardCostIsSmodice) {
  const RandomCase c = random_case(7, 12, 60, 600);
  const size_t n = c.problem.n_states();
  const auto reward = smodice_reward(c.problem, 1e-3);
  Problem problem = c.problem;
  problem.cost = {std::vector<double>(n * n), n};
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) problem.cost.table[i * n + j] = -reward[i];
  const Solution smodice = solve_smodice_kl(problem, reward, 0.0);
  double last = 1;
  for (const double eps1 : {1e-2, 1e-4, 1e-6}) {
    const RegSolution reg = solve_reg(problem, {.eps1 = eps1, .eps2 = 1, .convention = UConvention::Paper});
    const double distance = largest_difference(reg.d_sa, smodice.d_sa);
    EXPECT_LT(distance, last / 50) << "eps1 " << eps1;  // the distance is of the order of eps1
    last = distance;
    if (eps1 == 1e-6) {
      EXPECT_LE(distance, 1e-6);
      EXPECT_NEAR(reg.objective, smodice.objective, 1e-5);
    }
  }
  // With the other sign, which the appendix prints, it is a different programme.
  for (double& cost : problem.cost.table) cost = -cost;
  const RegSolution wrong = solve_reg(problem, {.eps1 = 1e-6, .eps2 = 1, .convention = UConvention::Paper});
  EXPECT_GT(largest_difference(wrong.d_sa, smodice.d_sa), 1e-2);
}

TEST(Solver, RegTendsToLp) {
  const RandomCase c = random_case(11, 20, 100, 1000);
  const double lp = solve_pwdice_lp(c.problem).objective;
  double last = 1;
  for (const double eps : {1e-1, 1e-2, 1e-3}) {
    const RegSolution reg =
        solve_reg(c.problem, {.eps1 = eps, .eps2 = eps, .convention = UConvention::Paper});
    EXPECT_TRUE(reg.converged);
    EXPECT_GE(reg.transport_cost, lp - 1e-8);
    EXPECT_LT(reg.transport_cost - lp, last);
    last = reg.transport_cost - lp;
  }
  EXPECT_LT(last, 1e-3);
}

// For the cost 1[i != j] the optimal transport cost is half the L1 distance of the marginals.
TEST(Solver, LpIsHalfTheL1Distance) {
  const RandomCase c = random_case(3, 20, 100, 100);
  const LpSolution lp = solve_pwdice_lp(c.problem);
  double l1 = 0;
  for (size_t s = 0; s < c.problem.n_states(); ++s) l1 += std::abs(lp.d_s[s] - c.problem.expert_s[s]);
  EXPECT_NEAR(lp.objective, l1 / 2, 1e-8);
}

TEST(Solver, PrimalEqualsDualAndMarginalsHold) {
  for (const uint32_t seed : {1u, 2u, 3u, 4u})
    for (const int agnostic : {10, 100, 1000}) {
      const RandomCase c = random_case(seed, 20, 100, agnostic, seed % 2 ? 0.01 : 1.0);
      for (const UConvention convention : {UConvention::Paper, UConvention::AsRun}) {
        const RegSolution reg = solve_reg(c.problem, {.convention = convention});
        EXPECT_TRUE(reg.converged);
        EXPECT_NEAR(reg.duality_gap, 0, 1e-10);
        EXPECT_LE(reg.column_residual, 1e-10);
        EXPECT_LE(flow_residual(c.problem, reg.d_sa), 1e-10);
        double total = 0;
        for (const double d : reg.d_sa) total += d;
        EXPECT_NEAR(total, 1, 1e-10);
      }
    }
}

TEST(Solver, DualLossGradientMatchesDifferences) {
  const RandomCase c = random_case(5, 8, 50, 300);
  const size_t n = c.problem.n_states();
  const RegOptions options{.eps1 = 0.3, .eps2 = 0.2, .convention = UConvention::Paper};
  DualPoint point{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n)};
  LegacyRandom random(1);
  for (auto* head : {&point.lambda_value, &point.lambda_pi, &point.lambda_expert})
    for (double& value : *head) value = random.uniform() - 0.5;
  const DualLoss at_point = dual_loss(c.problem, options, point);
  const auto check = [&](std::vector<double>& head, const std::vector<double>& gradient) {
    for (size_t k = 0; k < n; ++k) {
      const double value = head[k], h = 1e-5;
      head[k] = value + h;
      const double above = dual_loss(c.problem, options, point).loss;
      head[k] = value - h;
      const double below = dual_loss(c.problem, options, point).loss;
      head[k] = value;
      EXPECT_NEAR((above - below) / (2 * h), gradient[k], 1e-8);
    }
  };
  check(point.lambda_value, at_point.gradient.lambda_value);
  check(point.lambda_pi, at_point.gradient.lambda_pi);
  check(point.lambda_expert, at_point.gradient.lambda_expert);
}

// The multipliers are a minimum of the dual: every nearby point has a larger loss.
TEST(Solver, DualLossIsMinimalAtTheSolution) {
  const RandomCase c = random_case(6, 10, 50, 500);
  const RegOptions options{.eps1 = 0.05, .eps2 = 0.05, .convention = UConvention::Paper};
  const RegSolution reg = solve_reg(c.problem, options);
  LegacyRandom random(2);
  for (int trial = 0; trial < 20; ++trial) {
    DualPoint point{reg.lambda_value, reg.lambda_pi, reg.lambda_expert};
    for (auto* head : {&point.lambda_value, &point.lambda_pi, &point.lambda_expert})
      for (double& value : *head) value += 1e-2 * (random.uniform() - 0.5);
    EXPECT_GT(dual_loss(c.problem, options, point).loss, reg.dual_minimum);
  }
}

// The indicator cost goes through the op as one call, a table column by column; both are the same loss.
TEST(Solver, Float32CostPathsAgree) {
  RandomCase c = random_case(12, 20, 50, 1000);
  const size_t n = c.problem.n_states();
  const RegOptions options{.eps1 = 0.05, .eps2 = 0.05, .convention = UConvention::Paper};
  DualPoint point{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n)};
  LegacyRandom random(3);
  for (auto* head : {&point.lambda_value, &point.lambda_pi, &point.lambda_expert})
    for (double& value : *head) value = 0.2 * (random.uniform() - 0.5);
  const DualLoss exact = dual_loss(c.problem, options, point);
  const DualLoss indicator = float32_dual_loss(c.problem, options, point);
  c.problem.cost = {std::vector<double>(n * n, 1.0), n};
  for (size_t i = 0; i < n; ++i) c.problem.cost.table[i * n + i] = 0;
  const DualLoss table = float32_dual_loss(c.problem, options, point);
  for (const DualLoss* loss : {&indicator, &table}) {
    EXPECT_NEAR(loss->loss, exact.loss, 1e-5);
    EXPECT_LE(largest_difference(loss->gradient.lambda_pi, exact.gradient.lambda_pi), 1e-5);
    EXPECT_LE(largest_difference(loss->gradient.lambda_value, exact.gradient.lambda_value), 1e-5);
  }
}

double chi2_primal(const Problem& problem, const Chi2Options& options, const Chi2Solution& solution) {
  // The optimal plan is not returned; a lower bound from d alone must not exceed the dual value.
  double divergence = 0;
  for (size_t k = 0; k < problem.agnostic_sa.size(); ++k) {
    const double w = problem.agnostic_sa[k];
    if (w > 0) divergence += options.eps2 * w * std::pow(solution.d_sa[k] / w - 1, 2) / 2;
  }
  return divergence;
}

TEST(Solver, Chi2IsFeasibleAndBounded) {
  const RandomCase c = random_case(9, 20, 100, 1000, 1.0);
  const Chi2Options options{.eps1 = 0.05, .eps2 = 0.05};
  const Chi2Solution exact = solve_chi2(c.problem, options);
  EXPECT_TRUE(exact.converged);
  EXPECT_LE(exact.constraint_residual, 1e-9);
  EXPECT_NEAR(exact.objective, -exact.dual_minimum, 1e-12);
  EXPECT_GE(exact.objective, chi2_primal(c.problem, options, exact) - 1e-9);
  EXPECT_GE(exact.objective, solve_pwdice_lp(c.problem).objective - 1e-9);
  for (const double d : exact.d_sa) EXPECT_GE(d, 0);
}

// Without the clip the conjugate is larger, so the printed dual lies above the exact one; with a large eps no
// mass wants to be negative and the two coincide.
TEST(Solver, Chi2PaperFormAgreesWhereTheClipIsIdle) {
  const RandomCase c = random_case(10, 10, 200, 5000, 1.0);
  for (const double eps : {0.01, 100.0}) {
    const auto exact = solve_chi2(c.problem, {.eps1 = eps, .eps2 = eps});
    const auto paper = solve_chi2(c.problem, {.eps1 = eps, .eps2 = eps, .form = Chi2Form::Paper});
    EXPECT_GE(paper.dual_minimum, exact.dual_minimum - 1e-9);
    if (eps < 1) {
      EXPECT_GT(paper.dual_minimum, exact.dual_minimum + 1e-6);
    }
  }
}

TEST(Solver, SmodiceChi2IsFeasible) {
  for (const uint32_t seed : {1u, 2u, 3u}) {
    const RandomCase c = random_case(seed, 20, 100, 1000, 1.0);
    const Solution solution = solve_smodice_chi2(c.problem);
    EXPECT_LE(solution.constraint_residual, 1e-8);
    double total = 0;
    for (const double d : solution.d_sa) {
      EXPECT_GE(d, 0);
      total += d;
    }
    EXPECT_NEAR(total, 1, 1e-8);
  }
}

void expect_same(const RegSolution& a, const RegSolution& b, const char* what) {
  EXPECT_TRUE(a.converged && b.converged) << what;
  EXPECT_NEAR(a.objective, b.objective, 1e-11) << what;
  EXPECT_NEAR(a.transport_cost, b.transport_cost, 1e-9) << what;
  EXPECT_NEAR(a.duality_gap, 0, 1e-10) << what;
  EXPECT_NEAR(b.duality_gap, 0, 1e-10) << what;
  EXPECT_LE(largest_difference(a.d_sa, b.d_sa), 1e-9) << what;
  const size_t n_actions = a.d_sa.size() / a.d_s.size();
  for (size_t s = 0; s < a.d_s.size(); ++s)
    for (size_t k = s * n_actions; k < (s + 1) * n_actions; ++k)
      if (a.d_s[s] > 1e-6) {
        EXPECT_NEAR(a.policy[k], b.policy[k], 1e-6) << what << ", state " << s;
      }
}

// Conjugate gradients and Cholesky, the closed form of the indicator cost and a table of it: one optimum.
TEST(Solver, EveryWayToTheOptimumAgrees) {
  const RandomCase c = random_case(8, 60, 300, 900);
  const size_t n = c.problem.n_states();
  Problem table = c.problem;
  table.cost = {std::vector<double>(n * n, 1.0), n};
  for (size_t i = 0; i < n; ++i) table.cost.table[i * n + i] = 0;
  for (const UConvention convention : {UConvention::Paper, UConvention::AsRun}) {
    RegOptions options{.convention = convention, .system = NewtonSystem::Dense};
    const RegSolution dense = solve_reg(c.problem, options), dense_table = solve_reg(table, options);
    options.system = NewtonSystem::Iterative;
    expect_same(dense, dense_table, "a table of the indicator");
    expect_same(dense, solve_reg(c.problem, options), "conjugate gradients");
    expect_same(dense, solve_reg(table, options), "conjugate gradients and a table");
  }
  LegacyRandom random(4);
  for (double& cost : table.cost.table) cost = random.uniform();
  expect_same(solve_reg(table, {.system = NewtonSystem::Dense}),
              solve_reg(table, {.system = NewtonSystem::Iterative}), "random costs");
}

// The solver for large models, unseen pairs included, without a matrix of states by states.
TEST(Solver, ScalesBeyondThePaper) {
  ScalingOptions options;
  options.states = 1000;
  options.agnostic_size = 10000;
  const ScalingReport report = run_scaling(options);
  EXPECT_TRUE(report.converged);
  EXPECT_LE(std::abs(report.duality_gap), 1e-10);
  EXPECT_LE(report.constraint_residual, 1e-10);
  EXPECT_GT(report.expert_states, 100);
#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory
  EXPECT_LT(report.solve_megabytes, 8);  // one double for each pair of states
#endif
}

}  // namespace
}  // namespace pwdice::tabular
