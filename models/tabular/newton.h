// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Internal to models/tabular: the only header here that shows Eigen.
#include <Eigen/Core>
#include <span>

#include "flow.h"

namespace pwdice::tabular {

// A smooth convex function with its Newton system. Flat directions are the function's business.
class ConvexFunction {
 public:
  virtual ~ConvexFunction() = default;
  virtual Eigen::Index size() const = 0;
  virtual double value(const Eigen::VectorXd& x) = 0;
  // F(x + step) - F(x) at the x of the last derivatives(), accurate to a small fraction of itself however
  // small it is: a difference of two values could not see a state of mass 1e-12. slope = gradient . step.
  virtual double change(const Eigen::VectorXd& step, double slope) = 0;
  // Value and gradient at x; the Hessian there is what prepare() and solve() refer to.
  virtual double derivatives(const Eigen::VectorXd& x, Eigen::VectorXd& gradient) = 0;
  // Readies H + damping I, with `ridge` added after scaling it to a unit diagonal. False: not positive
  // definite. After a prepare() the Hessian is spent until the next derivatives().
  virtual bool prepare(double damping, double ridge) = 0;
  // Solves the prepared system; `guess` is where an iterative solver starts.
  virtual Eigen::VectorXd solve(const Eigen::VectorXd& b, const Eigen::VectorXd& guess) = 0;
  // Replaces the gradient of the last derivatives() by residuals measured in logarithms of masses, equal to
  // it to first order at the optimum. May leave it alone.
  virtual void logarithmic_residual(Eigen::VectorXd& /*gradient*/) const {}
};

// A Newton system held as a matrix, of which the lower triangle counts. The Cholesky factor takes its place.
class DenseSystem {
 public:
  Eigen::MatrixXd hessian;
  bool prepare(double damping, double ridge);
  Eigen::VectorXd solve(const Eigen::VectorXd& b) const;

 private:
  Eigen::VectorXd scale_;
};

// A function small enough for that. It pins a flat coordinate by leaving its gradient zero and its Hessian
// row that of the identity.
class DenseFunction : public ConvexFunction {
 public:
  double derivatives(const Eigen::VectorXd& x, Eigen::VectorXd& gradient) final {
    system_.hessian.setZero(size(), size());
    return differentiate(x, gradient, system_.hessian);
  }
  bool prepare(double damping, double ridge) final { return system_.prepare(damping, ridge); }
  Eigen::VectorXd solve(const Eigen::VectorXd& b, const Eigen::VectorXd& /*guess*/) final {
    return system_.solve(b);
  }

 protected:
  // Fills the gradient and the lower triangle of the Hessian, which arrives as zero.
  virtual double differentiate(const Eigen::VectorXd& x, Eigen::VectorXd& gradient,
                               Eigen::MatrixXd& hessian) = 0;

 private:
  DenseSystem system_;
};

struct NewtonOptions {
  int max_iterations = 300;
  double tolerance = 1e-27;   // on the squared Newton decrement g . H^-1 g
  double ridge = 1e-14;       // relative to the unit diagonal of the scaled Hessian
  double step_limit = 1e100;  // bound on |step|_2, by damping that fades as the gradient does
};

struct NewtonResult {
  double value = 0;
  double decrement = 0;  // squared, at the last iterate
  int iterations = 0;
  bool converged = false;
};

NewtonResult minimise(ConvexFunction& function, Eigen::VectorXd& x, const NewtonOptions& options = {});

inline std::span<const double> view(const Eigen::VectorXd& x) {
  return {x.data(), static_cast<size_t>(x.size())};
}

// hessian (lower triangle, top-left block) += sum_k weight_k b_k b_k^T
void add_outer_products(const SparseRows& rows, std::span<const double> weights, Eigen::MatrixXd& hessian);

// log sum_k exp(x_k), and x_k <- exp(x_k - that). NaN in gives NaN out; an empty or all -inf range gives
// -inf.
double log_sum_exp(std::span<const double> x);
double softmax_in_place(std::span<double> x);

// log sum_k p_k exp(u_k) - sum_k p_k u_k >= 0, without cancellation; p sums to one. `mean` returns sum_k p_k
// u_k.
double cumulant_remainder(std::span<const double> p, std::span<const double> u, double* mean = nullptr);

}  // namespace pwdice::tabular
