// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Exact occupancy of a policy:  (I - gamma P^T) d = (1-gamma) p0,  P(s,s') = sum_a pi(a|s) T(s'|s,a).
// Small models use a dense LU factorisation. Large ones iterate d <- (1-gamma) p0 + gamma P^T d: the error
// after a change of c is at most c gamma/(1-gamma), and a sweep costs one pass over the sparse rows.
#include "model.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "../../kernels/error.h"

namespace pwdice::tabular {
namespace {

constexpr double kRowSumTolerance = 1e-9;
constexpr int kDenseLimit = 256;  // states up to which the O(n^3) factorisation is the faster way
constexpr double kSweepChange = 1e-17;

size_t at(int index) { return static_cast<size_t>(index); }

// P^T applied to the state masses d.
void step_masses(const TransitionModel& model, const Policy& policy, std::span<const double> d,
                 std::span<double> out) {
  const int n_actions = model.n_actions();
  std::vector<double> mass(at(model.n_rows()));
  for (int row = 0; row < model.n_rows(); ++row) mass[at(row)] = policy[at(row)] * d[at(row / n_actions)];
  std::fill(out.begin(), out.end(), 0.0);
  model.push_forward(mass, out);
}

std::vector<double> solve_dense(const TransitionModel& model, std::span<const double> p0, double gamma,
                                const Policy& policy) {
  const int n = model.n_states();
  Eigen::MatrixXd a = Eigen::MatrixXd::Identity(n, n);
  for (int row = 0; row < model.n_rows(); ++row) {
    const int s = row / model.n_actions();
    const double weight = gamma * policy[at(row)];
    if (weight == 0) continue;
    if (model.is_uniform(row)) a.col(s).array() -= weight / n;
    for (const auto& entry : model.entries(row)) a(entry.next, s) -= weight * entry.probability;
  }
  const Eigen::VectorXd b = (1 - gamma) * Eigen::Map<const Eigen::VectorXd>(p0.data(), n);
  const Eigen::VectorXd d = a.partialPivLu().solve(b);
  return {d.data(), d.data() + n};
}

std::vector<double> solve_by_sweeps(const TransitionModel& model, std::span<const double> p0, double gamma,
                                    const Policy& policy) {
  const size_t n = at(model.n_states());
  std::vector<double> d(p0.begin(), p0.end()), next(n);
  for (double change = 1; change > kSweepChange;) {
    step_masses(model, policy, d, next);
    double new_change = 0;
    for (size_t s = 0; s < n; ++s) {
      next[s] = (1 - gamma) * p0[s] + gamma * next[s];
      new_change = std::max(new_change, std::abs(next[s] - d[s]));
    }
    d.swap(next);
    if (new_change >= change && new_change < 1e-14) break;  // rounding has the last word
    change = new_change;
  }
  return d;
}

}  // namespace

TransitionModel::TransitionModel(int n_states, int n_actions) : n_states_(n_states), n_actions_(n_actions) {
  PWDICE_CHECK(n_states > 0 && n_actions > 0,
               "transition model: {} states and {} actions, expected at least 1 of each", n_states,
               n_actions);
}

TransitionModel TransitionModel::from_dense(int n_states, int n_actions, std::span<const double> dense) {
  TransitionModel model(n_states, n_actions);
  PWDICE_CHECK(dense.size() == at(n_states) * at(model.n_rows()),
               "transition model: {} probabilities, expected {} x {} x {}", dense.size(), n_states, n_actions,
               n_states);
  for (int row = 0; row < model.n_rows(); ++row) {
    std::vector<Entry> entries;
    for (int s = 0; s < n_states; ++s) {
      const double p = dense[at(row) * at(n_states) + at(s)];
      if (p != 0) entries.push_back({s, p});
    }
    model.append_row(std::move(entries));
  }
  return model;
}

void TransitionModel::append_row(std::vector<Entry> entries) {
  const int row = static_cast<int>(uniform_.size());
  PWDICE_CHECK(row < n_rows(), "transition model: more than {} rows", n_rows());
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.next < b.next; });
  double sum = 0;
  for (size_t k = 0; k < entries.size(); ++k) {
    PWDICE_CHECK(entries[k].next >= 0 && entries[k].next < n_states_,
                 "transition model: successor {} of state {}, action {} is not one of the {} states",
                 entries[k].next, row / n_actions_, row % n_actions_, n_states_);
    PWDICE_CHECK(k == 0 || entries[k].next != entries[k - 1].next,
                 "transition model: successor {} of state {}, action {} is listed twice", entries[k].next,
                 row / n_actions_, row % n_actions_);
    PWDICE_CHECK(entries[k].probability >= 0,
                 "transition model: probability {} at state {}, action {} is negative",
                 entries[k].probability, row / n_actions_, row % n_actions_);
    sum += entries[k].probability;
  }
  PWDICE_CHECK(std::abs(sum - 1) <= kRowSumTolerance,
               "transition model: the probabilities of state {}, action {} sum to {}, expected 1",
               row / n_actions_, row % n_actions_, sum);
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  begin_.push_back(static_cast<int64_t>(entries_.size()));
  uniform_.push_back(0);
}

void TransitionModel::append_uniform_row() {
  PWDICE_CHECK(static_cast<int>(uniform_.size()) < n_rows(), "transition model: more than {} rows", n_rows());
  begin_.push_back(static_cast<int64_t>(entries_.size()));
  uniform_.push_back(1);
}

std::span<const TransitionModel::Entry> TransitionModel::entries(int row) const {
  const auto first = static_cast<size_t>(begin_[at(row)]), last = static_cast<size_t>(begin_[at(row) + 1]);
  return std::span(entries_).subspan(first, last - first);
}

double TransitionModel::expect(int row, std::span<const double> values, double mean) const {
  if (is_uniform(row)) return mean;
  double sum = 0;
  for (const Entry& entry : entries(row)) sum += entry.probability * values[at(entry.next)];
  return sum;
}

void TransitionModel::push_forward(std::span<const double> mass, std::span<double> out) const {
  double spread = 0;
  for (int row = 0; row < n_rows(); ++row) {
    if (is_uniform(row)) spread += mass[at(row)];
    for (const Entry& entry : entries(row)) out[at(entry.next)] += mass[at(row)] * entry.probability;
  }
  if (spread == 0) return;
  for (double& value : out) value += spread / n_states_;
}

std::vector<double> TransitionModel::dense_row(int row) const {
  std::vector<double> out(at(n_states_), is_uniform(row) ? 1.0 / n_states_ : 0.0);
  for (const Entry& entry : entries(row)) out[at(entry.next)] = entry.probability;
  return out;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void check_start(std::span<const double> p0, int n_states, double gamma) {
  PWDICE_CHECK(p0.size() == at(n_states), "start distribution: {} entries for {} states", p0.size(),
               n_states);
  double sum = 0;
  for (const double p : p0) {
    PWDICE_CHECK(p >= 0, "start distribution: probability {} is negative", p);
    sum += p;
  }
  PWDICE_CHECK(std::abs(sum - 1) <= kRowSumTolerance, "start distribution: sums to {}, expected 1", sum);
  PWDICE_CHECK(gamma >= 0 && gamma < 1, "discount: gamma is {}, expected 0 <= gamma < 1", gamma);
}

std::vector<double> occupancy(const TransitionModel& model, std::span<const double> p0, double gamma,
                              const Policy& policy) {
  PWDICE_CHECK(model.complete(), "occupancy: the transition model has missing rows");
  check_start(p0, model.n_states(), gamma);
  PWDICE_CHECK(policy.size() == at(model.n_rows()), "occupancy: policy of {} entries, expected {}",
               policy.size(), model.n_rows());
  const int n_actions = model.n_actions();
  for (int s = 0; s < model.n_states(); ++s) {
    double sum = 0;
    for (int a = 0; a < n_actions; ++a) sum += policy[at(s * n_actions + a)];
    PWDICE_CHECK(std::abs(sum - 1) <= kRowSumTolerance,
                 "occupancy: the policy of state {} sums to {}, expected 1", s, sum);
  }

  std::vector<uint8_t> allowed(policy.size());
  std::transform(policy.begin(), policy.end(), allowed.begin(), [](double p) { return p > 0; });
  const auto reachable = reachable_states(model, p0, allowed);
  const auto d = model.n_states() <= kDenseLimit ? solve_dense(model, p0, gamma, policy)
                                                 : solve_by_sweeps(model, p0, gamma, policy);
  std::vector<double> d_sa(policy.size());
  for (size_t row = 0; row < d_sa.size(); ++row) {
    const size_t s = row / at(n_actions);
    if (reachable[s]) d_sa[row] = policy[row] * d[s];
  }
  return d_sa;
}

std::vector<double> state_marginal(std::span<const double> d_sa, int n_actions) {
  std::vector<double> d(d_sa.size() / at(n_actions));
  for (size_t row = 0; row < d_sa.size(); ++row) d[row / at(n_actions)] += d_sa[row];
  return d;
}

std::vector<uint8_t> reachable_states(const TransitionModel& model, std::span<const double> p0,
                                      std::span<const uint8_t> allowed) {
  std::vector<uint8_t> seen(p0.size());
  std::vector<int> queue;
  const auto visit = [&](int s) {
    if (seen[at(s)]) return;
    seen[at(s)] = 1;
    queue.push_back(s);
  };
  for (int s = 0; s < model.n_states(); ++s)
    if (p0[at(s)] > 0) visit(s);
  for (size_t head = 0; head < queue.size(); ++head) {
    for (int a = 0; a < model.n_actions(); ++a) {
      const int row = queue[head] * model.n_actions() + a;
      if (!allowed.empty() && !allowed[at(row)]) continue;
      if (model.is_uniform(row)) {
        std::fill(seen.begin(), seen.end(), uint8_t{1});
        queue.resize(0);
        return seen;
      }
      for (const auto& entry : model.entries(row))
        if (entry.probability > 0) visit(entry.next);
    }
  }
  return seen;
}

}  // namespace pwdice::tabular
