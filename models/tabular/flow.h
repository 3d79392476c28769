// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data.h"

namespace pwdice::tabular {

// Rows b_k of linear functions b_k . x, each a few entries plus one constant that multiplies sum(x).
// The constant carries the uniform rows of T_hat, so a row never has more entries than its model row.
class SparseRows {
 public:
  struct Entry {
    int column;
    double value;
  };
  explicit SparseRows(int n_columns = 0) : n_columns_(n_columns) {}

  void append(std::span<const Entry> entries, double constant);
  int n_columns() const { return n_columns_; }
  size_t size() const { return constant_.size(); }
  std::span<const Entry> entries(size_t k) const {
    return std::span(entries_).subspan(begin_[k], begin_[k + 1] - begin_[k]);
  }
  double constant(size_t k) const { return constant_[k]; }
  double dot(size_t k, std::span<const double> x, double sum_x) const;
  // out += sum_k weight_k b_k
  void accumulate(std::span<const double> weights, std::span<double> out) const;

 private:
  int n_columns_;
  std::vector<Entry> entries_;
  std::vector<size_t> begin_{0};
  std::vector<double> constant_;
};

// The pairs (s,a) that can carry mass: positive reference, no successor that is forbidden, reachable from p0.
// Dropping the rest keeps every multiplier finite (a mass that must be zero sends its multiplier to
// infinity).
struct Flow {
  std::vector<int> states;            // kept states, in order
  std::vector<int> index;             // state -> position in `states`, or -1
  std::vector<int> model_row;         // per kept pair: s * n_actions + a
  std::vector<int> state_of;          // per kept pair: position of s
  std::vector<size_t> first_pair;     // (states + 1): pairs of a state are contiguous
  std::vector<double> log_reference;  // per kept pair: log W(s,a)
  SparseRows rows;                    // b_(s,a) = e_s - gamma T(.|s,a)
  std::vector<double> start;          // (1-gamma) p0 on the kept states
};

// reference_sa: W. state_allowed: empty, or 0 where d(s) must be zero. Throws if no flow from p0 is left.
Flow make_flow(const Problem& problem, std::span<const double> reference_sa,
               std::span<const uint8_t> state_allowed);

// Masses per kept pair, spread over all (s,a) with zero elsewhere.
std::vector<double> expand(const Flow& flow, std::span<const double> masses, size_t n_pairs);

// Largest violation of  sum_a d(s,a) = (1-gamma) p0(s) + gamma sum d(s',a') T(s|s',a').
double flow_residual(const Problem& problem, std::span<const double> d_sa);

}  // namespace pwdice::tabular
