// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
//   dF/dx = sum_k w_k phi(y_k) b_k - linear,   phi(y) = max(y+1, 0) or y+1
//   H     = sum_k w_k / tau_k 1[k active] b_k b_k^T
// The clipped form is piecewise quadratic; where few rows are active H is singular. The proximal term makes
// it definite, and minimising repeatedly around the last answer (proximal point) still ends at a minimiser of
// F.
#include "quadratic_dual.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pwdice::tabular {
namespace {

constexpr double kFirstProximal = 1e-2, kLastProximal = 1e-13;
constexpr double kProximalShrink = 0.05;
constexpr int kMaxRounds = 30;

}  // namespace

std::vector<double> QuadraticDual::arguments(const Eigen::VectorXd& x) const {
  const double sum_x = x.sum();
  std::vector<double> y(rows->size());
  for (size_t k = 0; k < y.size(); ++k) y[k] = (offset[k] + rows->dot(k, view(x), sum_x)) / tau[k];
  return y;
}

double QuadraticDual::evaluate(const Eigen::VectorXd& x) {
  y_ = arguments(x);
  double value = -std::inner_product(linear.begin(), linear.end(), x.data(), 0.0);
  for (size_t k = 0; k < y_.size(); ++k) {
    const double phi = clip ? std::max(y_[k] + 1, 0.0) : y_[k] + 1;
    value += tau[k] * weight[k] * (phi * phi - 1) / 2;
  }
  if (proximal > 0) value += proximal / 2 * (x - centre).squaredNorm();
  return value;
}

double QuadraticDual::value(const Eigen::VectorXd& x) { return evaluate(x); }

double QuadraticDual::differentiate(const Eigen::VectorXd& x, Eigen::VectorXd& gradient,
                                    Eigen::MatrixXd& hessian) {
  const double value = evaluate(x);
  scratch_.resize(y_.size());
  for (size_t k = 0; k < y_.size(); ++k)
    scratch_[k] = weight[k] * (clip ? std::max(y_[k] + 1, 0.0) : y_[k] + 1);
  for (Eigen::Index i = 0; i < x.size(); ++i) gradient[i] = -linear[static_cast<size_t>(i)];
  rows->accumulate(scratch_, {gradient.data(), static_cast<size_t>(gradient.size())});
  for (size_t k = 0; k < y_.size(); ++k) scratch_[k] = !clip || y_[k] > -1 ? weight[k] / tau[k] : 0.0;
  add_outer_products(*rows, scratch_, hessian);
  if (proximal > 0) {
    gradient += proximal * (x - centre);
    hessian.diagonal().array() += proximal;
  }
  return value;
}

// phi(y+u)^2/2 exceeds its tangent at y by (phi(y+u) - phi(y))^2/2 + phi(y) (phi(y+u) - phi(y) - u). Both
// parts are non-negative (the second is zero where the clip does not act), so nothing cancels against the
// slope.
double QuadraticDual::change(const Eigen::VectorXd& step, double slope) {
  const double sum = step.sum();
  double change = slope + proximal / 2 * step.squaredNorm();
  for (size_t k = 0; k < y_.size(); ++k) {
    const double u = rows->dot(k, view(step), sum) / tau[k];
    const double before = clip ? std::max(y_[k] + 1, 0.0) : y_[k] + 1;
    const double after = clip ? std::max(y_[k] + u + 1, 0.0) : y_[k] + u + 1;
    const double moved = clip ? after - before : u;
    change += tau[k] * weight[k] * (moved * moved / 2 + before * (moved - u));
  }
  return change;
}

NewtonResult minimise_quadratic(QuadraticDual& dual, Eigen::VectorXd& x) {
  NewtonResult total;
  dual.proximal = kFirstProximal;
  for (int round = 0; round < kMaxRounds; ++round) {
    dual.centre = x;
    const auto result = minimise(dual, x);
    total.iterations += result.iterations;
    total.decrement = result.decrement;
    total.converged = result.converged;
    const double moved =
        dual.proximal * (x - dual.centre).norm();  // the gradient that the proximal term hides
    if (dual.proximal <= kLastProximal && moved < 1e-15) break;
    dual.proximal = std::max(kLastProximal, dual.proximal * kProximalShrink);
  }
  dual.proximal = 0;
  total.value = dual.value(x);
  return total;
}

}  // namespace pwdice::tabular
