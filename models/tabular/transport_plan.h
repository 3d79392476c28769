// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Internal to models/tabular.
#include <memory>
#include <span>
#include <vector>

#include "reg.h"

namespace pwdice::tabular {

// The rows P_i = softmax_j(log U_ij + (l2_j - c_ij)/eps1) of the transport plan between n kept states and the
// m expert states, and log G_i, the logarithm of their normalisers.
class TransportPlan {
 public:
  virtual ~TransportPlan() = default;
  size_t rows() const { return states_.size(); }
  size_t columns() const { return columns_.size(); }

  virtual void set(std::span<const double> l2, double eps1) = 0;
  double log_g(size_t i) const { return log_g_[i]; }
  virtual void row(size_t i, std::span<double> p) const = 0;                                  // P_i
  virtual void apply(std::span<const double> v, std::span<double> out) const = 0;             // P v
  virtual void apply_transposed(std::span<const double> w, std::span<double> out) const = 0;  // P^T w
  virtual void apply_squares(std::span<const double> w, std::span<double> out) const = 0;  // sum_i w_i P_ij^2
  // mean_i = sum_j P_ij u_j and remainder_i = log sum_j P_ij exp(u_j) - mean_i >= 0, without cancellation.
  virtual void cumulants(std::span<const double> u, std::span<double> mean,
                         std::span<double> remainder) const = 0;
  // sum_ij w_i P_ij c_ij, and sum_ij w_i P_ij log(P_ij / U_ij)
  struct Totals {
    double cost = 0, divergence = 0;
  };
  virtual Totals totals(std::span<const double> w) const = 0;

 protected:
  TransportPlan(const Problem& problem, const References& references, std::span<const int> states,
                std::span<const int> columns);
  const Problem& problem_;
  const References& references_;
  std::vector<size_t> states_, columns_;
  std::vector<double> log_g_;
};

// The indicator cost has a closed form of O(n + m) time and memory; a cost table needs O(n m), as it does
// itself.
std::unique_ptr<TransportPlan> make_transport_plan(const Problem& problem, const References& references,
                                                   std::span<const int> states, std::span<const int> columns);

}  // namespace pwdice::tabular
