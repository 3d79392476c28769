// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Dual over x = (l0, l1, l2) on the states that can carry mass and the expert's states:
//   sum eps1 U f*(y1) + sum eps2 W f*(y2) - (1-gamma) p0.l0 - d^E.l2
//   y1 = (l1_i + l2_j - c_ij)/eps1        y2 = (l0(s) - gamma T l0 - l1(s))/eps2
// Rows of the pairs come first, then the rows of Pi, in one QuadraticDual.
#include "chi2.h"

#include <algorithm>
#include <cmath>

#include "../../kernels/error.h"
#include "metrics.h"
#include "quadratic_dual.h"

namespace pwdice::tabular {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

struct Chi2Dual {
  Flow flow;
  std::vector<int> columns;  // expert states with mass
  SparseRows rows;
  QuadraticDual dual;
};

void add_flow_rows(const Problem& problem, double eps2, Chi2Dual& out) {
  const int n = static_cast<int>(out.flow.states.size());
  for (size_t k = 0; k < out.flow.rows.size(); ++k) {
    const auto row = out.flow.rows.entries(k);
    std::vector<SparseRows::Entry> entries(row.begin(), row.end());
    // The constant of a uniform row belongs to the l0 block alone, so it is written out here.
    if (out.flow.rows.constant(k) != 0)
      for (int s = 0; s < n; ++s) entries.push_back({s, out.flow.rows.constant(k)});
    entries.push_back({n + out.flow.state_of[k], -1.0});
    out.rows.append(entries, 0.0);
    out.dual.weight.push_back(problem.agnostic_sa[at(out.flow.model_row[k])]);
    out.dual.offset.push_back(0.0);
    out.dual.tau.push_back(eps2);
  }
}

void add_transport_rows(const Problem& problem, double eps1, Chi2Dual& out) {
  const int n = static_cast<int>(out.flow.states.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < static_cast<int>(out.columns.size()); ++j) {
      const size_t s = at(out.flow.states[at(i)]), t = at(out.columns[at(j)]);
      const SparseRows::Entry entries[] = {{n + i, 1.0}, {2 * n + j, 1.0}};
      out.rows.append(entries, 0.0);
      out.dual.weight.push_back(problem.agnostic_s[s] * problem.expert_s[t]);
      out.dual.offset.push_back(-problem.cost(s, t));
      out.dual.tau.push_back(eps1);
    }
}

void build(const Problem& problem, const Chi2Options& options, Chi2Dual& out) {
  out.flow = make_flow(problem, problem.agnostic_sa, {});
  for (size_t j = 0; j < problem.n_states(); ++j)
    if (problem.expert_s[j] > 0) out.columns.push_back(static_cast<int>(j));
  const size_t n = out.flow.states.size();
  out.rows = SparseRows(static_cast<int>(2 * n + out.columns.size()));
  add_flow_rows(problem, options.eps2, out);
  add_transport_rows(problem, options.eps1, out);
  out.dual.rows = &out.rows;
  out.dual.clip = options.form == Chi2Form::Exact;
  out.dual.linear = out.flow.start;
  out.dual.linear.resize(2 * n, 0.0);
  for (const int j : out.columns) out.dual.linear.push_back(problem.expert_s[at(j)]);
}

double largest_column_residual(const Problem& problem, const Chi2Dual& built, std::span<const double> y) {
  std::vector<double> sums(built.columns.size());
  const size_t first = built.flow.rows.size();
  for (size_t k = first; k < y.size(); ++k)
    sums[(k - first) % sums.size()] += built.dual.weight[k] * std::max(y[k] + 1, 0.0);
  double worst = 0;
  for (size_t j = 0; j < sums.size(); ++j)
    worst = std::max(worst, std::abs(sums[j] - problem.expert_s[at(built.columns[j])]));
  return worst;
}

}  // namespace

Chi2Solution solve_chi2(const Problem& problem, const Chi2Options& options) {
  check_problem(problem);
  PWDICE_CHECK(options.eps1 > 0 && options.eps2 > 0,
               "chi2: eps1 is {} and eps2 {}, expected positive numbers", options.eps1, options.eps2);
  Chi2Dual built;
  build(problem, options, built);
  Eigen::VectorXd x = Eigen::VectorXd::Zero(built.dual.size());
  const auto newton = minimise_quadratic(built.dual, x);
  const auto y = built.dual.arguments(x);

  const bool exact = options.form == Chi2Form::Exact;
  std::vector<double> masses(built.flow.rows.size());
  for (size_t k = 0; k < masses.size(); ++k)
    masses[k] = built.dual.weight[k] * std::max(exact ? y[k] + 1 : y[k], 0.0);

  Chi2Solution solution;
  solution.d_sa = expand(built.flow, masses, problem.agnostic_sa.size());
  solution.d_s = state_marginal(solution.d_sa, problem.model.n_actions());
  solution.policy = policy_from_occupancy(solution.d_sa, problem.model.n_actions(), Negatives::Clip);
  solution.dual_minimum = newton.value;
  solution.objective = -newton.value;
  solution.newton_decrement = newton.decrement;
  solution.iterations = newton.iterations;
  solution.converged = newton.converged;
  if (exact) {
    solution.column_residual = largest_column_residual(problem, built, y);
    solution.constraint_residual = std::max(solution.column_residual, flow_residual(problem, solution.d_sa));
  }
  return solution;
}

}  // namespace pwdice::tabular
