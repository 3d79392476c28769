// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Internal to models/tabular.
#include <memory>
#include <vector>

#include "newton.h"
#include "reg.h"
#include "transport_plan.h"

namespace pwdice::tabular {

// The dual of solve_reg with the row multipliers l1 eliminated; see reduced_dual.cpp. x = (l0 on the kept
// states, l2 on the columns with d^E > 0).
class ReducedDual final : public ConvexFunction {
 public:
  ReducedDual(const Problem& problem, const RegOptions& options);

  void set_eps(double eps1, double eps2) { eps1_ = eps1, eps2_ = eps2; }
  Eigen::Index size() const override { return n_ + m_; }
  double value(const Eigen::VectorXd& x) override { return evaluate(x); }
  double change(const Eigen::VectorXd& step, double slope) override;
  double derivatives(const Eigen::VectorXd& x, Eigen::VectorXd& gradient) override;
  bool prepare(double damping, double ridge) override;
  Eigen::VectorXd solve(const Eigen::VectorXd& b, const Eigen::VectorXd& guess) override;
  void logarithmic_residual(Eigen::VectorXd& gradient) const override;

  RegSolution solution(const Eigen::VectorXd& x);

 private:
  std::span<const double> values(const Eigen::VectorXd& x) const {
    return view(x).first(flow_.states.size());
  }
  std::span<const double> potentials(const Eigen::VectorXd& x) const { return view(x).last(columns_.size()); }
  double linear(const Eigen::VectorXd& x) const;  // (1-gamma) p0 . l0 + d^E . l2
  double evaluate(const Eigen::VectorXd& x);
  void add_flow_hessian(Eigen::MatrixXd& hessian) const;
  void add_transport_hessian(Eigen::MatrixXd& hessian) const;
  void pin(Eigen::MatrixXd& hessian) const;
  Eigen::VectorXd diagonal() const;
  void product(const Eigen::VectorXd& v, Eigen::VectorXd& out);  // H v
  Eigen::VectorXd conjugate_gradients(const Eigen::VectorXd& b, const Eigen::VectorXd& guess);
  SparseRows mean_rows() const;  // per state, sum_a pi(a|s) b_(s,a)

  const Problem& problem_;
  References references_;
  Flow flow_;
  std::vector<int> columns_;  // expert states with mass
  std::unique_ptr<TransportPlan> plan_;
  Eigen::Index n_, m_, pinned_;
  bool dense_;
  double eps1_, eps2_;

  // Of the last evaluate(): per state log Q and d; per pair the policy.
  std::vector<double> log_q_, d_, policy_;
  Eigen::VectorXd column_sum_;
  DenseSystem system_;
  double damping_ = 0, ridge_ = 0;
  Eigen::VectorXd scale_;
  std::vector<double> per_pair_, per_state_, per_row_;  // scratch of product()
};

}  // namespace pwdice::tabular
