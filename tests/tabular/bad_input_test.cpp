// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Input that is wrong gives one sentence; input that is merely degenerate gives a defined answer.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "../../kernels/error.h"
#include "../../models/tabular/grid.h"
#include "../../models/tabular/reg.h"
#include "golden_case.h"

namespace pwdice::tabular {
namespace {

template <class F>
void expect_error(F&& function, const std::string& part) {
  try {
    function();
    ADD_FAILURE() << "no error, expected one with '" << part << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// States 0 and 1 alternate; state 2 cannot be reached from the start.
Problem with_unreachable_state() {
  const Trajectory agnostic{{0, 0, 1}, {1, 0, 0}, {0, 1, 1}, {1, 1, 0}, {0, 0, 1}};
  const Trajectory expert{{0, 0, 1}, {1, 0, 0}, {0, 0, 1}};
  return estimate_problem(agnostic, expert, 2, std::vector<double>{1, 0, 0}, {});
}

TEST(BadInput, UnreachableStatesCarryExactlyNoMass) {
  const Problem problem = with_unreachable_state();
  EXPECT_EQ(problem.agnostic_s[2], 0);
  for (const Method method : all_methods()) {
    const Solution solution = solve(method, problem);
    for (size_t k = 0; k < solution.policy.size(); ++k)
      EXPECT_TRUE(std::isfinite(solution.policy[k])) << name(method);
    EXPECT_EQ(solution.policy[4], 0.5) << name(method);
    EXPECT_EQ(solution.policy[5], 0.5) << name(method);
    if (method != Method::Lp) {
      EXPECT_EQ(solution.d_s[2], 0) << name(method);
    }
  }
}

// The expert was seen in a state that the model cannot reach: its column is filled from elsewhere at cost 1.
TEST(BadInput, ExpertInAnUnreachableState) {
  Problem problem = with_unreachable_state();
  problem.expert_s = {0.4, 0.3, 0.3};
  for (const UConvention convention : {UConvention::AsRun, UConvention::Paper}) {
    const RegSolution reg = solve_reg(problem, {.convention = convention});
    EXPECT_TRUE(reg.converged);
    EXPECT_LE(reg.column_residual, 1e-10);
    EXPECT_GE(reg.transport_cost, 0.3 - 1e-9);
    EXPECT_NEAR(reg.duality_gap, 0, 1e-10);
  }
}

TEST(BadInput, ZeroMassColumnsAreDropped) {
  const RandomCase c = random_case(1, 20, 3, 500);  // an expert of three transitions: most columns are empty
  const RegSolution reg = solve_reg(c.problem, {.convention = UConvention::Paper});
  EXPECT_TRUE(reg.converged);
  for (size_t j = 0; j < c.problem.n_states(); ++j)
    if (c.problem.expert_s[j] == 0) {
      EXPECT_EQ(reg.lambda_expert[j], 0);
    }
}

TEST(BadInput, SingleStateExpertAndSingleTransition) {
  const Trajectory agnostic{{0, 1, 2}}, expert{{0, 0, 0}};
  const Problem problem = estimate_problem(agnostic, expert, 2, std::vector<double>{1, 0, 0}, {});
  for (const Method method : all_methods()) {
    const Solution solution = solve(method, problem);
    for (const double p : solution.policy) EXPECT_TRUE(std::isfinite(p)) << name(method);
  }
}

TEST(BadInput, EmptyData) {
  const Trajectory none, some{{0, 0, 0}};
  const std::vector<double> p0{1};
  expect_error([&] { estimate_problem(none, some, 1, p0, {}); }, "estimate_transitions: the data is empty");
  expect_error([&] { estimate_problem(some, none, 1, p0, {}); }, "estimate_expert_states: the data is empty");
}

TEST(BadInput, DataOutsideTheStates) {
  const Trajectory bad{{0, 0, 3}}, good{{0, 0, 1}};
  const std::vector<double> p0{1, 0};
  expect_error([&] { estimate_problem(bad, good, 1, p0, {}); },
               "(0, 0, 3) is outside 2 states and 1 actions");
}

TEST(BadInput, RowsThatDoNotSumToOne) {
  const std::vector<double> dense{0.5, 0.4, 0, 1};
  expect_error([&] { TransitionModel::from_dense(2, 1, dense); }, "state 0, action 0 sum to 0.9");
  const std::vector<double> negative{1.5, -0.5, 0, 1};
  expect_error([&] { TransitionModel::from_dense(2, 1, negative); }, "is negative");
  const std::vector<double> nan{std::numeric_limits<double>::quiet_NaN(), 0, 0, 1};
  expect_error([&] { TransitionModel::from_dense(2, 1, nan); }, "state 0, action 0");
  expect_error([&] { TransitionModel::from_dense(2, 2, dense); }, "4 probabilities");
}

TEST(BadInput, DistributionsAreChecked) {
  Problem problem = with_unreachable_state();
  problem.expert_s = {0.5, 0.2, 0.1};
  expect_error([&] { solve_reg(problem); }, "d^E(s) sums to 0.8");
  problem = with_unreachable_state();
  problem.p0 = {0.5, 0.4, 0};
  expect_error([&] { solve_reg(problem); }, "start distribution: sums to 0.9");
  problem = with_unreachable_state();
  problem.gamma = 1;
  expect_error([&] { solve_reg(problem); }, "gamma is 1");
  problem = with_unreachable_state();
  problem.cost = {std::vector<double>(9, INFINITY), 3};
  expect_error([&] { solve_reg(problem); }, "a cost is inf");
}

TEST(BadInput, OptionsAreChecked) {
  const Problem problem = with_unreachable_state();
  expect_error([&] { solve_reg(problem, {.eps1 = 0}); }, "eps1 is 0");
  GridOptions options;
  options.instances = 0;
  expect_error([&] { run_grid(options); }, "0 instances per cell");
  options = {};
  options.etas = {2};
  expect_error([&] { run_grid(options); }, "eta is 2");
  options = {};
  options.methods = {};
  expect_error([&] { run_grid(options); }, "must each name at least one value");
}

// The references forbid every action at the start: no flow is possible.
TEST(BadInput, StartWithoutReferenceMass) {
  Problem problem = with_unreachable_state();
  problem.agnostic_sa = {0, 0, 0.5, 0.5, 0, 0};
  problem.agnostic_s = {0, 1, 0};
  expect_error([&] { solve_reg(problem, {.convention = UConvention::Paper}); }, "state 0 must carry mass");
}

}  // namespace
}  // namespace pwdice::tabular
