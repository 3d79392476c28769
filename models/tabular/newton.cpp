// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Damped Newton for the duals of this directory.
//   step = -H^-1 g, with H scaled to a unit diagonal first: the masses of the states span many orders of magnitude
//   and so do the rows of H; after the scaling Cholesky is accurate row by row, so that the policy of a state of mass
//   1e-12 is as good as that of one of mass 0.1.
//   Far from the optimum the step is halved until Armijo's rule holds. Once the squared decrement is small against
//   the rounding of the value, values say nothing any more: full steps are taken until the decrement stalls.
#include "newton.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "../../kernels/error.h"

namespace pwdice::tabular {
namespace {

constexpr double kArmijo = 1e-4;
constexpr double kEndgame = 1e-11;      // squared decrement below which values are too coarse to steer by
constexpr double kAcceptable = 1e-16;   // squared decrement at which a stall counts as convergence
constexpr int kMaxHalvings = 60;

// Solves H step = -g in place; returns false if H is not positive definite at this ridge.
bool newton_step(Eigen::MatrixXd& hessian, const Eigen::VectorXd& gradient, double ridge, Eigen::VectorXd& step) {
  const Eigen::Index n = gradient.size();
  Eigen::VectorXd scale(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const double diagonal = hessian(i, i);
    scale[i] = diagonal > std::numeric_limits<double>::min() ? 1.0 / std::sqrt(diagonal) : 0.0;
  }
  for (Eigen::Index j = 0; j < n; ++j) {
    hessian.col(j).tail(n - j).array() *= scale.tail(n - j).array() * scale[j];
    hessian(j, j) = 1.0 + ridge;
  }
  Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>, Eigen::Lower> factor(hessian);
  if (factor.info() != Eigen::Success) return false;
  step = -(scale.array() * factor.solve((scale.array() * gradient.array()).matrix()).array()).matrix();
  return step.allFinite();
}

// Largest t in 1, 1/2, 1/4, ... with enough decrease, or 0.
double backtrack(ConvexFunction& function, const Eigen::VectorXd& x, const Eigen::VectorXd& step, double value,
                 double slope) {
  double t = 1;
  for (int k = 0; k < kMaxHalvings; ++k, t /= 2)
    if (function.value(x + t * step) <= value + kArmijo * t * slope) return t;
  return 0;
}

}  // namespace

NewtonResult minimise(ConvexFunction& function, Eigen::VectorXd& x, const NewtonOptions& options) {
  const Eigen::Index n = function.size();
  Eigen::VectorXd gradient(n), step(n), best_x = x;
  Eigen::MatrixXd hessian(n, n);
  NewtonResult result;
  double best = std::numeric_limits<double>::infinity(), ridge = options.ridge;
  int stalls = 0;
  for (; result.iterations < options.max_iterations; ++result.iterations) {
    result.value = function.derivatives(x, gradient, hessian);
    if (!std::isfinite(result.value) || !gradient.allFinite())
      fail(ErrorCode::NotFinite, "Newton: the dual is not finite after {} iterations", result.iterations);
    if (!newton_step(hessian, gradient, ridge, step)) {
      ridge *= 100;
      if (ridge > 1) fail(ErrorCode::Internal, "Newton: the Hessian is not positive definite");
      continue;
    }
    result.decrement = -gradient.dot(step);
    if (result.decrement < best) best_x = x;
    if (result.decrement <= options.tolerance) break;
    if (result.decrement <= kEndgame) {
      stalls = result.decrement > 0.25 * best ? stalls + 1 : 0;
      best = std::min(best, result.decrement);
      if (stalls >= 2) break;
      x += step;
      continue;
    }
    best = std::min(best, result.decrement);
    const double t = backtrack(function, x, step, result.value, -result.decrement);
    if (t == 0) {
      ridge = std::max(ridge, 1e-14) * 1e3;  // a direction spoilt by rounding: lean towards the scaled gradient
      if (ridge > 1) break;
      continue;
    }
    ridge = std::max(options.ridge, ridge / 10);
    x += t * step;
  }
  x = best_x;
  result.decrement = std::min(best, result.decrement);
  result.converged = result.decrement <= kAcceptable;
  result.value = function.value(x);
  return result;
}

void add_outer_products(const SparseRows& rows, std::span<const double> weights, Eigen::MatrixXd& hessian) {
  // (b + c 1)(b + c 1)^T = b b^T + c (b 1^T + 1 b^T) + c^2 1 1^T: the dense parts are summed and added once.
  const Eigen::Index n = rows.n_columns();
  Eigen::VectorXd mixed = Eigen::VectorXd::Zero(n);
  double everywhere = 0;
  bool dense = false;
  for (size_t k = 0; k < rows.size(); ++k) {
    const auto entries = rows.entries(k);
    const double c = rows.constant(k), w = weights[k];
    for (const auto& p : entries)
      for (const auto& q : entries)
        if (p.column >= q.column) hessian(p.column, q.column) += w * p.value * q.value;
    if (c == 0) continue;
    dense = true;
    everywhere += w * c * c;
    for (const auto& p : entries) mixed[p.column] += w * c * p.value;
  }
  if (!dense) return;
  for (Eigen::Index j = 0; j < n; ++j)
    hessian.col(j).segment(j, n - j).array() += mixed.tail(n - j).array() + (mixed[j] + everywhere);
}

double log_sum_exp(std::span<const double> x) {
  double top = -std::numeric_limits<double>::infinity();
  for (const double value : x) {
    if (std::isnan(value)) return value;
    top = std::max(top, value);
  }
  if (std::isinf(top)) return top;
  double sum = 0;
  for (const double value : x) sum += std::exp(value - top);
  return top + std::log(sum);
}

double softmax_in_place(std::span<double> x) {
  const double lse = log_sum_exp(x);
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - lse);
  for (double& value : x) value /= sum;  // lse is rounded; the masses should sum to one to the last bit
  return lse;
}

}  // namespace pwdice::tabular
