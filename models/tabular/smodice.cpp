// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Duals over x = -V (b = e_s - gamma T(.|s,a), so b . x = gamma T V - V):
//   KL     min (1-gamma) p0 . V + log sum W exp(R + gamma T V - V)
//   chi2   min (1-gamma) p0 . V + sum W f*(R + gamma T V - V),  f*(y) = max(y+1, 0)^2/2 - 1/2
#include "smodice.h"

#include <algorithm>
#include <cmath>

#include "../../kernels/error.h"
#include "log_partition.h"
#include "metrics.h"
#include "quadratic_dual.h"

namespace pwdice::tabular {
namespace {

Solution finish(const Problem& problem, const Flow& flow, std::span<const double> masses,
                const NewtonResult& newton) {
  Solution solution;
  solution.d_sa = expand(flow, masses, problem.agnostic_sa.size());
  solution.d_s = state_marginal(solution.d_sa, problem.model.n_actions());
  solution.policy = policy_from_occupancy(solution.d_sa, problem.model.n_actions(), Negatives::Clip);
  solution.objective = -newton.value;  // the dual minimum is the maximum of sum d R - D
  solution.constraint_residual = flow_residual(problem, solution.d_sa);
  solution.newton_decrement = newton.decrement;
  solution.iterations = newton.iterations;
  solution.converged = newton.converged;
  return solution;
}

std::vector<double> reward_per_pair(const Flow& flow, std::span<const double> reward) {
  std::vector<double> out(flow.state_of.size());
  for (size_t k = 0; k < out.size(); ++k)
    out[k] = reward[static_cast<size_t>(flow.states[static_cast<size_t>(flow.state_of[k])])];
  return out;
}

std::vector<double> floored(std::span<const double> masses, double floor) {
  std::vector<double> out(masses.begin(), masses.end());
  for (double& value : out) value += floor;
  return out;
}

}  // namespace

std::vector<double> smodice_reward(const Problem& problem, double delta) {
  PWDICE_CHECK(delta > 0, "SMODICE: delta is {}, expected a positive number", delta);
  std::vector<double> reward(problem.n_states());
  for (size_t s = 0; s < reward.size(); ++s)
    reward[s] = std::log((problem.expert_s[s] + delta) / (problem.agnostic_s[s] + delta));
  return reward;
}

Solution solve_smodice_kl(const Problem& problem, std::span<const double> reward, double floor) {
  check_problem(problem);
  PWDICE_CHECK(reward.size() == problem.n_states(), "SMODICE: {} rewards for {} states", reward.size(),
               problem.n_states());
  const Flow flow = make_flow(problem, floored(problem.agnostic_sa, floor), {});
  LogPartition dual;
  dual.rows = &flow.rows;
  dual.log_weight = flow.log_reference;
  dual.offset = reward_per_pair(flow, reward);
  dual.linear = flow.start;
  Eigen::VectorXd x = Eigen::VectorXd::Zero(dual.size());
  const auto newton = minimise(dual, x);
  return finish(problem, flow, dual.masses(x), newton);
}

Solution solve_smodice_kl(const Problem& problem, const SmodiceOptions& options) {
  check_problem(problem);
  return solve_smodice_kl(problem, smodice_reward(problem, options.delta), options.floor);
}

Solution solve_smodice_chi2(const Problem& problem, const SmodiceOptions& options) {
  check_problem(problem);
  const auto& d_i = problem.agnostic_sa;
  const bool some_zero = std::find(d_i.begin(), d_i.end(), 0.0) != d_i.end();
  const Flow flow = make_flow(problem, floored(d_i, some_zero ? options.floor : 0.0), {});
  QuadraticDual dual;
  dual.rows = &flow.rows;
  dual.offset = reward_per_pair(flow, smodice_reward(problem, options.delta));
  dual.tau.assign(flow.rows.size(), 1.0);
  dual.linear = flow.start;
  for (const double log_w : flow.log_reference) dual.weight.push_back(std::exp(log_w));
  Eigen::VectorXd x = Eigen::VectorXd::Zero(dual.size());
  const auto newton = minimise_quadratic(dual, x);
  auto masses = dual.arguments(x);
  for (size_t k = 0; k < masses.size(); ++k) masses[k] = dual.weight[k] * std::max(masses[k] + 1, 0.0);
  return finish(problem, flow, masses, newton);
}

}  // namespace pwdice::tabular
