// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Rows      [0, n)      sum_a d(s,a) - gamma sum d(s',a') T_hat(s|s',a') = (1-gamma) p0(s)
//           [n, 2n)     sum_j Pi_ij - sum_a d(i,a) = 0
//           [2n, 2n+m)  sum_i Pi_ij = d^E_j, only for the m columns with d^E_j > 0 (the others are exactly
//           zero)
// Columns   d(s,a), then Pi by rows.
#include "lp.h"

#include <cmath>

#include "../../kernels/error.h"
#include "flow.h"
#include "highs.h"
#include "metrics.h"

namespace pwdice::tabular {
namespace {

LinearProgramme build(const Problem& problem, const std::vector<size_t>& expert) {
  const int n = static_cast<int>(problem.n_states()), m = static_cast<int>(expert.size());
  LinearProgramme lp;
  lp.n_rows = 2 * n + m;
  lp.b.assign(static_cast<size_t>(lp.n_rows), 0.0);
  for (size_t s = 0; s < problem.n_states(); ++s) lp.b[s] = (1 - problem.gamma) * problem.p0[s];
  for (size_t j = 0; j < expert.size(); ++j) lp.b[2 * problem.n_states() + j] = problem.expert_s[expert[j]];

  for (int row = 0; row < problem.model.n_rows(); ++row) {
    const int s = row / problem.model.n_actions();
    auto flow = problem.model.dense_row(row);
    for (double& value : flow) value *= -problem.gamma;
    flow[static_cast<size_t>(s)] += 1;
    lp.add_column(0.0);
    for (int t = 0; t < n; ++t) lp.add_entry(t, flow[static_cast<size_t>(t)]);
    lp.add_entry(n + s, -1.0);
  }
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) {
      lp.add_column(problem.cost(static_cast<size_t>(i), expert[static_cast<size_t>(j)]));
      lp.add_entry(n + i, 1.0);
      lp.add_entry(2 * n + j, 1.0);
    }
  return lp;
}

}  // namespace

LpSolution solve_pwdice_lp(const Problem& problem) {
  check_problem(problem);
  std::vector<size_t> expert;
  for (size_t j = 0; j < problem.n_states(); ++j)
    if (problem.expert_s[j] > 0) expert.push_back(j);
  const LpAnswer answer = solve_lp(build(problem, expert));

  LpSolution solution;
  solution.d_sa.assign(answer.x.begin(), answer.x.begin() + problem.model.n_rows());
  solution.d_s = state_marginal(solution.d_sa, problem.model.n_actions());
  solution.policy = policy_from_occupancy(solution.d_sa, problem.model.n_actions(), Negatives::Clip);
  solution.objective = answer.objective;
  solution.constraint_residual = flow_residual(problem, solution.d_sa);
  solution.converged = true;
  solution.solver = answer.solver;
  return solution;
}

}  // namespace pwdice::tabular
