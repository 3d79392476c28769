// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Internal to models/tabular.
#include <vector>

#include "newton.h"

namespace pwdice::tabular {

// F(x) = sum_k tau_k w_k f*((offset_k + b_k . x) / tau_k) - linear . x        the dual of chi2 regularisation
//   exact       f*(y) = max(y + 1, 0)^2 / 2 - 1/2, masses w max(y + 1, 0)
//   unclipped   f*(y) = (y + 1)^2 / 2 - 1/2       (the form printed in the paper)
class QuadraticDual final : public DenseFunction {
 public:
  const SparseRows* rows = nullptr;
  std::vector<double> weight, offset, tau;  // one per row
  std::vector<double> linear;
  bool clip = true;
  double proximal = 0;  // adds proximal/2 |x - centre|^2, for the flat pieces of the clipped form
  Eigen::VectorXd centre;

  Eigen::Index size() const override { return rows->n_columns(); }
  double value(const Eigen::VectorXd& x) override;
  double change(const Eigen::VectorXd& step, double slope) override;
  std::vector<double> arguments(const Eigen::VectorXd& x) const;  // y_k

 private:
  double differentiate(const Eigen::VectorXd& x, Eigen::VectorXd& gradient,
                       Eigen::MatrixXd& hessian) override;
  double evaluate(const Eigen::VectorXd& x);  // value; leaves y in y_
  std::vector<double> y_, scratch_;
};

// Minimises by Newton within a proximal-point loop: each piece is quadratic, so the loop ends after few
// rounds.
NewtonResult minimise_quadratic(QuadraticDual& dual, Eigen::VectorXd& x);

}  // namespace pwdice::tabular
