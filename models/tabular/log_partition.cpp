// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
//   dF/dx = sum_k q_k b_k - linear         q = softmax(log_weight + (offset + b x) / tau)
//   H     = 1/tau sum_k q_k b_k b_k^T      the Hessian of the unnormalised form tau sum_k exp(..) at total
//   mass one
// F has an exact flat direction (a shift of all values changes the total mass only). The unnormalised form
// has the same minimiser and no flat direction, so its Hessian is used: positive definite without a
// correction term.
#include "log_partition.h"

#include <numeric>

namespace pwdice::tabular {

double LogPartition::exponents(const Eigen::VectorXd& x, std::vector<double>& out) const {
  const double sum_x = x.sum();
  out.resize(rows->size());
  for (size_t k = 0; k < out.size(); ++k)
    out[k] = log_weight[k] + (offset[k] + rows->dot(k, view(x), sum_x)) / tau;
  return std::inner_product(linear.begin(), linear.end(), x.data(), 0.0);
}

double LogPartition::value(const Eigen::VectorXd& x) {
  const double slope = exponents(x, scratch_);
  return tau * log_sum_exp(scratch_) - slope;
}

double LogPartition::differentiate(const Eigen::VectorXd& x, Eigen::VectorXd& gradient,
                                   Eigen::MatrixXd& hessian) {
  const double slope = exponents(x, scratch_);
  const double value = tau * softmax_in_place(scratch_) - slope;
  for (Eigen::Index i = 0; i < x.size(); ++i) gradient[i] = -linear[static_cast<size_t>(i)];
  rows->accumulate(scratch_, {gradient.data(), static_cast<size_t>(gradient.size())});
  q_ = scratch_;
  for (double& q : scratch_) q /= tau;
  add_outer_products(*rows, scratch_, hessian);
  return value;
}

double LogPartition::change(const Eigen::VectorXd& step, double slope) {
  const double sum = step.sum();
  for (size_t k = 0; k < scratch_.size(); ++k) scratch_[k] = rows->dot(k, view(step), sum) / tau;
  return slope + tau * cumulant_remainder(q_, scratch_);
}

std::vector<double> LogPartition::masses(const Eigen::VectorXd& x) const {
  std::vector<double> q;
  exponents(x, q);
  softmax_in_place(q);
  return q;
}

}  // namespace pwdice::tabular
