// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Continuation: the programme is solved for eps = max(target, 0.1 spread 0.6^k), k = 0, 1, .., each started
// from the line through the last two answers, coarsely until the target is reached. At a small eps the
// exponents are hundreds and Newton, started from zero, crawls.
#include "reg.h"

#include <algorithm>
#include <cmath>

#include "../../kernels/error.h"
#include "reduced_dual.h"

namespace pwdice::tabular {
namespace {

constexpr double kStart = 0.1, kShrink = 0.6;
constexpr double kStepLimit = 100;  // in units of eps; where Newton starts, it adapts
constexpr double kCoarse = 1e-5;    // squared decrement per eps

double cost_spread(const Cost& cost) {
  if (cost.table.empty()) return 1;
  const auto [low, high] = std::minmax_element(cost.table.begin(), cost.table.end());
  return *high - *low;
}

void check_options(const RegOptions& options) {
  PWDICE_CHECK(options.eps1 > 0 && options.eps2 > 0, "reg: eps1 is {} and eps2 {}, expected positive numbers",
               options.eps1, options.eps2);
  PWDICE_CHECK(options.floor_u >= 0 && options.floor_w >= 0, "reg: floors {} and {} must not be negative",
               options.floor_u, options.floor_w);
}

}  // namespace

References::References(const Problem& problem, const RegOptions& options) : w_(problem.agnostic_sa) {
  if (options.convention == UConvention::Paper) {
    row_ = problem.agnostic_s;
    column_ = problem.expert_s;
  } else {
    row_ = problem.expert_s;
    column_ = problem.agnostic_s;
    floor_ = options.floor_u;
    for (double& w : w_) w += options.floor_w;
  }
  log_floor_ = std::log(floor_);
  for (const double value : row_) log_row_.push_back(std::log(value));
  for (const double value : column_) log_column_.push_back(std::log(value));
}

double References::log_u(size_t i, size_t j) const {
  return floor_ > 0 ? std::log(floor_ + row_[i] * column_[j]) : log_row_[i] + log_column_[j];
}

bool References::row_allowed(size_t i) const { return floor_ > 0 || row_[i] > 0; }

RegSolution solve_reg(const Problem& problem, const RegOptions& options) {
  check_problem(problem);
  check_options(options);
  ReducedDual dual(problem, options);
  Eigen::VectorXd x = Eigen::VectorXd::Zero(dual.size());
  const double smallest = std::min(options.eps1, options.eps2);
  int iterations = 0;
  Eigen::VectorXd last_x;
  double last_eps = 0;
  for (double eps = kStart * cost_spread(problem.cost); eps > smallest; eps *= kShrink) {
    dual.set_eps(std::max(options.eps1, eps), std::max(options.eps2, eps));
    iterations += minimise(dual, x, {.tolerance = kCoarse * eps, .step_limit = kStepLimit * eps}).iterations;
    const double next = std::max(smallest, eps * kShrink);
    const Eigen::VectorXd here = x;
    // The multipliers are nearly linear in eps; of the first answer only the part that shrinks with eps is
    // known.
    if (last_eps > 0) {
      x += (next - eps) / (eps - last_eps) * (x - last_x);
    } else {
      x *= next / eps;
    }
    last_x = here;
    last_eps = eps;
  }
  dual.set_eps(options.eps1, options.eps2);
  const auto newton = minimise(dual, x, {.step_limit = kStepLimit * smallest});
  RegSolution solution = dual.solution(x);
  solution.iterations = iterations + newton.iterations;
  solution.newton_decrement = newton.decrement;
  solution.converged = newton.converged;
  return solution;
}

DualLoss dual_loss(const Problem& problem, const RegOptions& options, const DualPoint& point) {
  check_problem(problem);
  check_options(options);
  const size_t n = problem.n_states(), m = problem.n_actions();
  const auto& [l0, l1, l2] = point;
  PWDICE_CHECK(l0.size() == n && l1.size() == n && l2.size() == n,
               "dual_loss: heads of {}, {} and {} values for {} states", l0.size(), l1.size(), l2.size(), n);
  const References references(problem, options);
  DualLoss out{0, {std::vector<double>(n), std::vector<double>(n), std::vector<double>(n)}};

  std::vector<double> y1(n * n), y2(n * m);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      y1[i * n + j] = problem.expert_s[j] > 0
                          ? references.log_u(i, j) + (l1[i] + l2[j] - problem.cost(i, j)) / options.eps1
                          : -INFINITY;
  const double mean = mean_of(l0);
  for (size_t row = 0; row < y2.size(); ++row) {
    const size_t s = row / m;
    const double residual =
        l0[s] - problem.gamma * problem.model.expect(static_cast<int>(row), l0, mean) - l1[s];
    y2[row] = std::log(references.w()[row]) + residual / options.eps2;
  }
  out.loss = options.eps1 * softmax_in_place(y1) + options.eps2 * softmax_in_place(y2);

  auto& [g0, g1, g2] = out.gradient;
  problem.model.push_forward(y2, g0);
  for (size_t s = 0; s < n; ++s) {
    double mass = 0;
    for (size_t a = 0; a < m; ++a) mass += y2[s * m + a];
    g0[s] = mass - problem.gamma * g0[s] - (1 - problem.gamma) * problem.p0[s];
    g1[s] = -mass;
    g2[s] = -problem.expert_s[s];
    out.loss -= (1 - problem.gamma) * problem.p0[s] * l0[s] + problem.expert_s[s] * l2[s];
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      g1[i] += y1[i * n + j];
      g2[j] += y1[i * n + j];
    }
  return out;
}

}  // namespace pwdice::tabular
