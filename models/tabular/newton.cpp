// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Damped Newton for the duals of this directory.
//   step = -H^-1 g, with H scaled to a unit diagonal first: the masses of the states span many orders of
//   magnitude and so do the rows of H; after the scaling Cholesky is accurate row by row, so that the policy
//   of a state of mass 1e-12 is as good as that of one of mass 0.1. Far from the optimum the step is halved
//   until Armijo's rule holds. Once the squared decrement is small against the rounding of the value, values
//   say nothing any more: full steps are taken until the decrement stalls.
#include "newton.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "../../kernels/error.h"

namespace pwdice::tabular {
namespace {

constexpr double kArmijo = 1e-4;
constexpr double kAcceptable = 1e-18;  // squared decrement at which a stall counts as convergence
constexpr int kPatience = 3;           // iterations in a row without halving the decrement
constexpr double kSmallestDiagonal = 1e-250;
constexpr double kShortest = 1e-18, kLongest = 1e6;
constexpr double kSimilarSlopes =
    0.1;  // share of Newton's slope from which the logarithmic step needs no rival

struct Move {
  double t = 0;       // 0: no decrease was found
  double change = 0;  // of the value
};

// Backtracks from t = 1 until there is enough decrease; if t = 1 already has it, doubles t while the value
// falls: where a mass must change by many orders of magnitude the function is nearly linear along the step.
Move line_search(ConvexFunction& function, const Eigen::VectorXd& step, double slope) {
  if (!(slope < 0)) return {};
  Move move{1, function.change(step, slope)};
  if (!(move.change <= kArmijo * slope)) {
    for (double t = 0.5; t > kShortest; t /= 2) {
      const double change = function.change(t * step, t * slope);
      if (change <= kArmijo * t * slope) return {t, change};
    }
    return {};
  }
  while (move.t < kLongest) {
    const double further = function.change(2 * move.t * step, 2 * move.t * slope);
    if (!(further < move.change)) break;
    move = {2 * move.t, further};
  }
  return move;
}

// exp(v) - 1 - v
double exp_remainder(double v) {
  if (std::abs(v) > 0.05) return std::expm1(v) - v;
  return v * v *
         (1. / 2 +
          v * (1. / 6 + v * (1. / 24 + v * (1. / 120 + v * (1. / 720 + v * (1. / 5040 + v / 40320))))));
}

class Minimiser {
 public:
  Minimiser(ConvexFunction& function, const NewtonOptions& options)
      : function_(function),
        options_(options),
        ridge_(options.ridge),
        step_limit_(options.step_limit),
        gradient_(function.size()) {}

  NewtonResult run(Eigen::VectorXd& x) {
    for (; result_.iterations < options_.max_iterations; ++result_.iterations) {
      if (!compute_steps(x)) continue;
      if (result_.decrement <= options_.tolerance || stalled()) break;
      const double t = advance(x);
      if (t >= 1) step_limit_ *= 4;
      if (t < 0.25) step_limit_ /= 4;
      // No step helps: a direction spoilt by rounding, so lean towards the scaled gradient.
      ridge_ = t > 0 ? std::max(options_.ridge, ridge_ / 10) : ridge_ * 1e3;
      if (ridge_ > 1) break;
    }
    result_.converged = result_.decrement <= std::max(kAcceptable, options_.tolerance);
    result_.value = function_.value(x);
    return result_;
  }

 private:
  // Newton's step and its logarithmic variant at x; false if the Hessian needs a larger ridge first.
  bool compute_steps(const Eigen::VectorXd& x) {
    result_.value = function_.derivatives(x, gradient_);
    if (!std::isfinite(result_.value) || !gradient_.allFinite())
      fail(ErrorCode::NotFinite, "Newton: the dual is not finite after {} iterations", result_.iterations);
    if (!function_.prepare(gradient_.norm() / step_limit_, ridge_)) {
      ridge_ *= 100;
      if (ridge_ > 1) fail(ErrorCode::Internal, "Newton: the Hessian is not positive definite");
      return false;
    }
    step_ = -function_.solve(gradient_, Eigen::VectorXd::Zero(gradient_.size()));
    Eigen::VectorXd residual = gradient_;
    function_.logarithmic_residual(residual);
    log_step_ = -function_.solve(residual, -step_);
    slope_ = gradient_.dot(step_), log_slope_ = gradient_.dot(log_step_);
    result_.decrement = -slope_;
    return true;
  }

  // Moves x along the logarithmic step, or along Newton's where that lowers the value further.
  double advance(Eigen::VectorXd& x) {
    const Move log_move = line_search(function_, log_step_, log_slope_);
    if (log_move.t > 0 && -log_slope_ > kSimilarSlopes * -slope_) {
      x += log_move.t * log_step_;
      return log_move.t;
    }
    const Move move = line_search(function_, step_, slope_);
    if (move.t > 0 && move.change <= log_move.change) {
      x += move.t * step_;
      return move.t;
    }
    x += log_move.t * log_step_;
    return log_move.t;
  }

  // Rounding has been reached: the decrement is small and no longer falls.
  bool stalled() {
    if (result_.decrement > kAcceptable) return false;
    stalls_ = result_.decrement > best_ / 2 ? stalls_ + 1 : 0;
    best_ = std::min(best_, result_.decrement);
    return stalls_ >= kPatience;
  }

  ConvexFunction& function_;
  const NewtonOptions options_;
  NewtonResult result_;
  double ridge_, step_limit_;
  Eigen::VectorXd gradient_, step_, log_step_;
  double slope_ = 0, log_slope_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
  int stalls_ = 0;
};

}  // namespace

bool DenseSystem::prepare(double damping, double ridge) {
  const Eigen::Index n = hessian.rows();
  hessian.diagonal().array() += damping;
  scale_.resize(n);
  for (Eigen::Index i = 0; i < n; ++i)
    scale_[i] = hessian(i, i) > kSmallestDiagonal ? 1.0 / std::sqrt(hessian(i, i)) : 0.0;
  for (Eigen::Index j = 0; j < n; ++j) {
    hessian.col(j).tail(n - j).array() *= scale_.tail(n - j).array() * scale_[j];
    hessian(j, j) = 1.0 + ridge;
  }
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>, Eigen::Lower> factor(hessian);  // in place
  return factor.info() == Eigen::Success;
}

Eigen::VectorXd DenseSystem::solve(const Eigen::VectorXd& b) const {
  Eigen::VectorXd x = scale_.cwiseProduct(b);
  hessian.triangularView<Eigen::Lower>().solveInPlace(x);
  hessian.triangularView<Eigen::Lower>().adjoint().solveInPlace(x);
  return scale_.cwiseProduct(x);
}

NewtonResult minimise(ConvexFunction& function, Eigen::VectorXd& x, const NewtonOptions& options) {
  Minimiser minimiser(function, options);
  return minimiser.run(x);
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

double cumulant_remainder(std::span<const double> p, std::span<const double> u, double* mean) {
  double centre = 0;
  for (size_t k = 0; k < p.size(); ++k) centre += p[k] * u[k];
  double sum = 0;  // sum p (exp(v) - 1), v = u - centre, of which sum p v is zero
  for (size_t k = 0; k < p.size(); ++k)
    if (p[k] > 0) sum += p[k] * exp_remainder(u[k] - centre);
  if (mean) *mean = centre;
  return std::log1p(sum);
}

}  // namespace pwdice::tabular
