// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Internal to models/tabular.
#include <vector>

#include "newton.h"

namespace pwdice::tabular {

// F(x) = tau log sum_k exp(log_weight_k + (offset_k + b_k . x) / tau) - linear . x
// The dual of a KL-regularised linear programme whose total mass is one; the masses are the softmax.
class LogPartition final : public DenseFunction {
 public:
  const SparseRows* rows = nullptr;
  std::vector<double> log_weight, offset;  // one per row
  std::vector<double> linear;
  double tau = 1;

  Eigen::Index size() const override { return rows->n_columns(); }
  double value(const Eigen::VectorXd& x) override;
  double change(const Eigen::VectorXd& step, double slope) override;
  std::vector<double> masses(const Eigen::VectorXd& x) const;  // q_k, summing to one

 private:
  double differentiate(const Eigen::VectorXd& x, Eigen::VectorXd& gradient,
                       Eigen::MatrixXd& hessian) override;
  double exponents(const Eigen::VectorXd& x, std::vector<double>& out) const;  // returns linear . x
  std::vector<double> scratch_, q_;  // q_: masses at the last derivatives()
};

}  // namespace pwdice::tabular
