// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Internal to models/tabular: the only header here that shows Eigen.
#include <Eigen/Core>
#include <span>

#include "flow.h"

namespace pwdice::tabular {

// A smooth convex function. Flat directions are the function's business: it pins coordinates by leaving their
// gradient zero and their Hessian row that of the identity.
class ConvexFunction {
 public:
  virtual ~ConvexFunction() = default;
  virtual Eigen::Index size() const = 0;
  virtual double value(const Eigen::VectorXd& x) = 0;
  // Fills the gradient and the lower triangle of the Hessian.
  virtual double derivatives(const Eigen::VectorXd& x, Eigen::VectorXd& gradient, Eigen::MatrixXd& hessian) = 0;
};

struct NewtonOptions {
  int max_iterations = 300;
  double tolerance = 1e-28;  // on the squared Newton decrement g . H^-1 g
  double ridge = 1e-14;      // relative to the unit diagonal of the scaled Hessian
};

struct NewtonResult {
  double value = 0;
  double decrement = 0;  // squared, at the last iterate
  int iterations = 0;
  bool converged = false;
};

NewtonResult minimise(ConvexFunction& function, Eigen::VectorXd& x, const NewtonOptions& options = {});

inline std::span<const double> view(const Eigen::VectorXd& x) { return {x.data(), static_cast<size_t>(x.size())}; }

// hessian (lower triangle, top-left block) += sum_k weight_k b_k b_k^T
void add_outer_products(const SparseRows& rows, std::span<const double> weights, Eigen::MatrixXd& hessian);

// log sum_k exp(x_k), and x_k <- exp(x_k - that). NaN in gives NaN out; an empty or all -inf range gives -inf.
double log_sum_exp(std::span<const double> x);
double softmax_in_place(std::span<double> x);

}  // namespace pwdice::tabular
