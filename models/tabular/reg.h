// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "data.h"
#include "solution.h"

namespace pwdice::tabular {

// PW-DICE with KL regularisation:
//   min  sum Pi_ij c_ij + eps1 KL(Pi, U) + eps2 KL(d_sa, W)     rows of Pi = d_s, columns = d^E, d_sa obeys
//   the flow
// Two references are in use, and they give different answers:
//   Paper   U_ij = d^I_i d^E_j, W = d^I_sa: the programme whose dual is the paper's loss
//   AsRun   U_ij = 1e-10 + d^E_i d^I_j (transposed), W = 1e-8 + d^I_sa: what produced the published numbers
enum class UConvention { Paper, AsRun };

// How Newton's system is solved: by Cholesky, unknowns^2 numbers and unknowns^3/3 operations, or by conjugate
// gradients with products alone. Automatic goes by the number of unknowns; the answers are the same.
enum class NewtonSystem { Automatic, Dense, Iterative };

struct RegOptions {
  double eps1 = 0.01, eps2 = 0.01;
  UConvention convention = UConvention::AsRun;
  double floor_u = 1e-10, floor_w = 1e-8;  // AsRun only
  NewtonSystem system = NewtonSystem::Automatic;
};

struct RegSolution : Solution {
  double transport_cost = 0;   // sum Pi_ij c_ij
  double dual_minimum = 0;     // minimum of the dual loss; equals -objective
  double duality_gap = 0;      // objective + dual_minimum
  double column_residual = 0;  // largest |column sum of Pi - d^E_j|
  // Multipliers of flow, rows and columns; zero where a state or column carries no mass and was dropped.
  std::vector<double> lambda_value, lambda_pi, lambda_expert;
};

RegSolution solve_reg(const Problem& problem, const RegOptions& options = {});

// The dual loss of the paper in its three heads, with exact expectations, and its gradient:
//   eps1 log sum U exp((l1_i + l2_j - c_ij)/eps1) + eps2 log sum W exp((l0(s) - gamma T l0 - l1(s))/eps2)
//     - (1-gamma) p0 . l0 - d^E . l2
struct DualPoint {
  std::vector<double> lambda_value, lambda_pi, lambda_expert;  // l0, l1, l2
};
struct DualLoss {
  double loss = 0;
  DualPoint gradient;
};
DualLoss dual_loss(const Problem& problem, const RegOptions& options, const DualPoint& point);

// The references of a convention, U_ij = floor + row_i column_j; log U is computed entry by entry, never
// stored.
class References {
 public:
  References(const Problem& problem, const RegOptions& options);
  double log_u(size_t i, size_t j) const;
  double log_floor() const { return log_floor_; }  // the logarithms of zeros are -infinity
  double log_row(size_t i) const { return log_row_[i]; }
  double log_column(size_t j) const { return log_column_[j]; }
  bool row_allowed(size_t i) const;  // some U_ij > 0 in this row
  const std::vector<double>& w() const { return w_; }

 private:
  std::vector<double> row_, column_;
  std::vector<double> log_row_, log_column_;  // when the floor is zero, log U needs no logarithm per entry
  double floor_ = 0, log_floor_ = 0;
  std::vector<double> w_;
};

}  // namespace pwdice::tabular
