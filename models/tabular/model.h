// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pwdice::tabular {

// Transition probabilities T(s'|s,a), one row per pair (s,a): row = s * n_actions + a.
//   A row is a short list of successors, or "uniform over all states" (an unseen pair of an estimated model).
//   The uniform rows are kept implicit: at 2,000 states they would make a sparse model dense.
class TransitionModel {
 public:
  struct Entry {
    int next;
    double probability;
  };

  TransitionModel() = default;
  TransitionModel(int n_states, int n_actions);

  // dense: (n_states, n_actions, n_states), row-major; every row must sum to one within 1e-9.
  static TransitionModel from_dense(int n_states, int n_actions, std::span<const double> dense);

  // Rows are appended in order; entries are sorted by successor and must sum to one within 1e-9.
  void append_row(std::vector<Entry> entries);
  void append_uniform_row();

  int n_states() const { return n_states_; }
  int n_actions() const { return n_actions_; }
  int n_rows() const { return n_states_ * n_actions_; }
  bool complete() const { return static_cast<int>(uniform_.size()) == n_rows() && n_rows() > 0; }

  std::span<const Entry> entries(int row) const;  // empty for a uniform row
  bool is_uniform(int row) const { return uniform_[static_cast<size_t>(row)] != 0; }

  // sum_s' T(s'|row) values(s'); `mean` is the plain mean of values, used by uniform rows.
  double expect(int row, std::span<const double> values, double mean) const;

  // out(s') += sum_row mass(row) T(s'|row)
  void push_forward(std::span<const double> mass, std::span<double> out) const;

  std::vector<double> dense_row(int row) const;  // (n_states)

 private:
  int n_states_ = 0, n_actions_ = 0;
  std::vector<Entry> entries_;
  std::vector<int64_t> begin_{0};
  std::vector<uint8_t> uniform_;
};

double mean_of(std::span<const double> values);

// A policy is (n_states, n_actions), row-major, rows summing to one.
using Policy = std::vector<double>;

// d(s,a) = pi(a|s) d(s) with  d(s) = (1-gamma) p0(s) + gamma sum_(s',a') T(s|s',a') d(s',a'), summing to one.
// States that pi cannot reach from p0 get exactly zero.
std::vector<double> occupancy(const TransitionModel& model, std::span<const double> p0, double gamma,
                              const Policy& policy);

// d(s) = sum_a d(s,a)
std::vector<double> state_marginal(std::span<const double> d_sa, int n_actions);

// States reachable from p0 through pairs with allowed(row) != 0; an empty `allowed` admits every pair.
std::vector<uint8_t> reachable_states(const TransitionModel& model, std::span<const double> p0,
                                      std::span<const uint8_t> allowed);

// Throws one sentence if p0 is not a distribution over n states or gamma is not in [0, 1).
void check_start(std::span<const double> p0, int n_states, double gamma);

}  // namespace pwdice::tabular
