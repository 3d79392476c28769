// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Internal to models/tabular.
#include <vector>

#include "newton.h"
#include "reg.h"

namespace pwdice::tabular {

// The dual of solve_reg with the row multipliers l1 eliminated; see reduced_dual.cpp. x = (l0 on the kept
// states, l2 on the columns with d^E > 0). Pi is streamed by row blocks and never stored.
class ReducedDual final : public ConvexFunction {
 public:
  ReducedDual(const Problem& problem, const RegOptions& options);

  void set_eps(double eps1, double eps2) { eps1_ = eps1, eps2_ = eps2; }
  Eigen::Index size() const override { return n_ + m_; }
  double value(const Eigen::VectorXd& x) override;
  double change(const Eigen::VectorXd& step, double slope) override;
  double derivatives(const Eigen::VectorXd& x, Eigen::VectorXd& gradient, Eigen::MatrixXd& hessian) override;

  void logarithmic_residual(Eigen::VectorXd& gradient) const override;

  RegSolution solution(const Eigen::VectorXd& x);

 private:
  double linear(const Eigen::VectorXd& x) const;  // (1-gamma) p0 . l0 + d^E . l2
  void transport_row(size_t i, const Eigen::VectorXd& x,
                     std::span<double> out) const;  // log U_ij + (l2_j - c_ij)/eps1
  double evaluate(const Eigen::VectorXd& x);
  void add_flow_terms(Eigen::VectorXd& gradient, Eigen::MatrixXd& hessian);
  void add_transport_terms(const Eigen::VectorXd& x, Eigen::VectorXd& gradient, Eigen::MatrixXd& hessian);
  void pin(Eigen::VectorXd& gradient, Eigen::MatrixXd& hessian) const;

  const Problem& problem_;
  References references_;
  Flow flow_;
  std::vector<int> columns_;  // expert states with mass
  Eigen::Index n_, m_, pinned_;
  double eps1_, eps2_;

  // Of the last evaluate(): per state log G, log Q, d; per pair the policy, then d(s,a).
  std::vector<double> log_g_, log_q_, d_, policy_;
  Eigen::VectorXd column_sum_;
  Eigen::VectorXd x_;     // of the last derivatives()
  SparseRows mean_rows_;  // per state, sum_a pi(a|s) b_(s,a)
  std::vector<double> scratch_;
};

}  // namespace pwdice::tabular
