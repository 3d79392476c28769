// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// The minimum over a shift of V of the printed dual equals (1-gamma) p0.V + (1+alpha) log sum d^I_ss exp(..),
// so the same log-partition form as SMODICE is solved, over x = -V with rows e_s - gamma e_s'.
#include "lobsdice.h"

#include <cmath>

#include "../../kernels/error.h"
#include "log_partition.h"
#include "metrics.h"

namespace pwdice::tabular {
namespace {

std::vector<double> agnostic_pairs(const Problem& problem) {
  const size_t n = problem.n_states(), m = problem.n_actions();
  std::vector<double> d_ss(n * n);
  for (size_t row = 0; row < problem.agnostic_sa.size(); ++row) {
    const double mass = problem.agnostic_sa[row];
    if (mass == 0) continue;
    double* out = d_ss.data() + row / m * n;
    if (problem.model.is_uniform(static_cast<int>(row)))
      for (size_t s = 0; s < n; ++s) out[s] += mass / static_cast<double>(n);
    for (const auto& entry : problem.model.entries(static_cast<int>(row)))
      out[static_cast<size_t>(entry.next)] += mass * entry.probability;
  }
  return d_ss;
}

// d(s,a) = d^I(s,a) sum_s' T_hat(s'|s,a) weight(s,s')
std::vector<double> weight_pairs(const Problem& problem, std::span<const double> weight) {
  const size_t n = problem.n_states(), m = problem.n_actions();
  std::vector<double> d_sa(problem.agnostic_sa.size());
  for (size_t row = 0; row < d_sa.size(); ++row) {
    const auto w = weight.subspan(row / m * n, n);
    d_sa[row] = problem.agnostic_sa[row] * problem.model.expect(static_cast<int>(row), w, mean_of(w));
  }
  return d_sa;
}

Solution read_out(const Problem& problem, std::vector<double> d_sa) {
  Solution solution;
  solution.d_sa = std::move(d_sa);
  solution.d_s = state_marginal(solution.d_sa, problem.model.n_actions());
  solution.policy = policy_from_occupancy(solution.d_sa, problem.model.n_actions(), Negatives::Keep);
  return solution;
}

void check_options(const LobsdiceOptions& options) {
  PWDICE_CHECK(options.alpha >= 0 && options.delta > 0,
               "LobsDICE: alpha is {} and delta {}, expected alpha >= 0, delta > 0", options.alpha,
               options.delta);
}

}  // namespace

Solution solve_lobsdice(const Problem& problem, const LobsdiceOptions& options) {
  check_problem(problem);
  check_options(options);
  const size_t n = problem.n_states();
  PWDICE_CHECK(problem.expert_ss.size() == n * n, "LobsDICE: the problem has no expert pairs d^E(s,s')");
  const auto d_ss = agnostic_pairs(problem);
  const Flow flow = make_flow(problem, problem.agnostic_sa, {});

  SparseRows rows(static_cast<int>(flow.states.size()));
  LogPartition dual;
  std::vector<size_t> item;  // s * n + s'
  for (size_t k = 0; k < n * n; ++k) {
    if (d_ss[k] <= 0) continue;
    const int s = flow.index[k / n], next = flow.index[k % n];
    PWDICE_CHECK(s >= 0 && next >= 0, "LobsDICE: the pair ({}, {}) has mass {} but a state of none", k / n,
                 k % n, d_ss[k]);
    const SparseRows::Entry entries[] = {{s, s == next ? 1 - problem.gamma : 1.0}, {next, -problem.gamma}};
    rows.append(std::span(entries, s == next ? 1 : 2), 0.0);
    dual.log_weight.push_back(std::log(d_ss[k]));
    dual.offset.push_back(std::log((problem.expert_ss[k] + options.delta) / (d_ss[k] + options.delta)));
    item.push_back(k);
  }
  dual.rows = &rows;
  dual.linear = flow.start;
  dual.tau = 1 + options.alpha;
  Eigen::VectorXd x = Eigen::VectorXd::Zero(dual.size());
  const auto newton = minimise(dual, x);

  const auto masses = dual.masses(x);
  std::vector<double> weight(n * n);
  for (size_t k = 0; k < item.size(); ++k) weight[item[k]] = masses[k] / d_ss[item[k]];
  Solution solution = read_out(problem, weight_pairs(problem, weight));
  solution.objective = newton.value;
  solution.newton_decrement = newton.decrement;
  solution.iterations = newton.iterations;
  solution.converged = newton.converged;
  return solution;
}

Solution lobsdice_as_run(const Problem& problem, const LobsdiceOptions& options) {
  check_problem(problem);
  check_options(options);
  auto weight = agnostic_pairs(problem);
  for (double& w : weight) w = std::pow(options.delta / (w + options.delta), 1 / (1 + options.alpha));
  Solution solution = read_out(problem, weight_pairs(problem, weight));
  solution.converged = true;
  return solution;
}

}  // namespace pwdice::tabular
