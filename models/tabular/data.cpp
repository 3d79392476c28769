// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Estimators of the protocol:
//   T_hat(s'|s,a) = N(s,a,s') / N(s,a), 1/|S| if N(s,a) = 0        pi(a|s) = N(s,a) / N(s), 1/|A| if N(s) = 0
//   d^E(s) = sum_t gamma^t 1[s_t = s] / sum_t gamma^t              d^I = occupancy of pi in T_hat
#include "data.h"

#include <cmath>
#include <limits>
#include <map>

#include "../../kernels/error.h"

namespace pwdice::tabular {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

void check_data(std::span<const Transition> data, int n_states, int n_actions, const char* what) {
  PWDICE_CHECK(!data.empty(), "{}: the data is empty, expected at least one transition", what);
  for (const Transition& t : data)
    PWDICE_CHECK(t.state >= 0 && t.state < n_states && t.next >= 0 && t.next < n_states && t.action >= 0 &&
                     t.action < n_actions,
                 "{}: transition ({}, {}, {}) is outside {} states and {} actions", what, t.state, t.action,
                 t.next, n_states, n_actions);
}

// Index of the successor in a row, drawn with one uniform.
int draw_successor(const TransitionModel& model, int row, LegacyRandom& random) {
  if (model.is_uniform(row)) return random.choose(model.dense_row(row));
  const auto entries = model.entries(row);
  std::vector<double> probabilities(entries.size());
  for (size_t k = 0; k < entries.size(); ++k) probabilities[k] = entries[k].probability;
  return entries[at(random.choose(probabilities))].next;
}

void check_distribution(std::span<const double> values, size_t size, const char* what) {
  PWDICE_CHECK(values.size() == size, "problem: {} has {} entries, expected {}", what, values.size(), size);
  double sum = 0;
  for (const double value : values) {
    PWDICE_CHECK(value >= 0, "problem: {} contains {}, expected non-negative masses", what, value);
    sum += value;
  }
  PWDICE_CHECK(std::abs(sum - 1) <= 1e-6, "problem: {} sums to {}, expected 1", what, sum);
}

}  // namespace

Trajectory sample_trajectory(const Mdp& mdp, const Policy& policy, int length, LegacyRandom& random) {
  PWDICE_CHECK(length >= 0, "sample_trajectory: length {} is negative", length);
  const int n_actions = mdp.n_actions();
  Trajectory trajectory;
  trajectory.reserve(at(length));
  int state = random.choose(mdp.p0);
  for (int t = 0; t < length; ++t) {
    const auto pi = std::span(policy).subspan(at(state * n_actions), at(n_actions));
    const int action = random.choose(pi);
    const int next = draw_successor(mdp.transitions, state * n_actions + action, random);
    trajectory.push_back({state, action, next});
    state = next;
  }
  return trajectory;
}

TransitionModel estimate_transitions(std::span<const Transition> data, int n_states, int n_actions) {
  check_data(data, n_states, n_actions, "estimate_transitions");
  TransitionModel model(n_states, n_actions);
  std::vector<std::map<int, int64_t>> counts(at(model.n_rows()));
  for (const Transition& t : data) ++counts[at(t.state * n_actions + t.action)][t.next];
  for (const auto& row : counts) {
    if (row.empty()) {
      model.append_uniform_row();
      continue;
    }
    int64_t total = 0;
    for (const auto& [next, count] : row) total += count;
    std::vector<TransitionModel::Entry> entries;
    for (const auto& [next, count] : row)
      entries.push_back({next, static_cast<double>(count) / static_cast<double>(total)});
    model.append_row(std::move(entries));
  }
  return model;
}

Policy estimate_behaviour(std::span<const Transition> data, int n_states, int n_actions) {
  check_data(data, n_states, n_actions, "estimate_behaviour");
  Policy policy(at(n_states) * at(n_actions));
  std::vector<double> visits(at(n_states));
  for (const Transition& t : data) {
    policy[at(t.state * n_actions + t.action)] += 1;
    visits[at(t.state)] += 1;
  }
  for (size_t row = 0; row < policy.size(); ++row) {
    const double n = visits[row / at(n_actions)];
    policy[row] = n > 0 ? policy[row] / n : 1.0 / n_actions;
  }
  return policy;
}

std::vector<double> estimate_expert_states(std::span<const Transition> data, int n_states, double gamma) {
  check_data(data, n_states, std::numeric_limits<int>::max(), "estimate_expert_states");
  std::vector<double> d(at(n_states));
  double weight = 1, total = 0;
  for (const Transition& t : data) {
    d[at(t.state)] += weight;
    total += weight;
    weight *= gamma;
  }
  for (double& value : d) value /= total;
  return d;
}

std::vector<double> estimate_expert_pairs(std::span<const Transition> data, int n_states, double gamma) {
  check_data(data, n_states, std::numeric_limits<int>::max(), "estimate_expert_pairs");
  std::vector<double> d(at(n_states) * at(n_states));
  double weight = 1, total = 0;
  for (const Transition& t : data) {
    d[at(t.state) * at(n_states) + at(t.next)] += weight;
    total += weight;
    weight *= gamma;
  }
  for (double& value : d) value /= total;
  return d;
}

void check_problem(const Problem& problem) {
  const size_t n = problem.n_states(), m = problem.n_actions();
  PWDICE_CHECK(problem.model.complete(), "problem: the transition model has missing rows");
  PWDICE_CHECK(at(problem.model.n_states()) == n, "problem: p0 has {} entries for {} states", n,
               problem.model.n_states());
  check_start(problem.p0, problem.model.n_states(), problem.gamma);
  check_distribution(problem.agnostic_sa, n * m, "d^I(s,a)");
  check_distribution(problem.agnostic_s, n, "d^I(s)");
  check_distribution(problem.expert_s, n, "d^E(s)");
  PWDICE_CHECK(problem.expert_ss.empty() || problem.expert_ss.size() == n * n,
               "problem: d^E(s,s') has {} entries, expected {}", problem.expert_ss.size(), n * n);
  PWDICE_CHECK(problem.cost.table.empty() || (problem.cost.table.size() == n * n && problem.cost.n == n),
               "problem: the cost has {} entries, expected {}", problem.cost.table.size(), n * n);
  for (const double c : problem.cost.table) PWDICE_CHECK(std::isfinite(c), "problem: a cost is {}", c);
}

Problem estimate_problem(std::span<const Transition> agnostic, std::span<const Transition> expert,
                         int n_actions, std::span<const double> p0, const EstimateOptions& options) {
  const int n_states = static_cast<int>(p0.size());
  Problem problem;
  problem.model = estimate_transitions(agnostic, n_states, n_actions);
  problem.p0.assign(p0.begin(), p0.end());
  problem.gamma = options.gamma;
  const Policy behaviour = estimate_behaviour(agnostic, n_states, n_actions);
  problem.agnostic_sa = occupancy(problem.model, p0, options.gamma, behaviour);
  problem.agnostic_s = state_marginal(problem.agnostic_sa, n_actions);
  problem.expert_s = estimate_expert_states(expert, n_states, options.gamma);
  if (options.expert_pairs) problem.expert_ss = estimate_expert_pairs(expert, n_states, options.gamma);
  return problem;
}

Instance draw_instance(const RandomMdpOptions& options, int expert_size, int agnostic_size,
                       LegacyRandom& random) {
  auto [mdp, experts] = make_random_mdp(options, random);
  Instance instance{std::move(mdp), std::move(experts), {}, {}, {}};
  const Policy uniform(instance.experts.softmax.size(), 1.0 / options.n_actions);
  instance.softmax_expert = sample_trajectory(instance.mdp, instance.experts.softmax, expert_size, random);
  instance.agnostic = sample_trajectory(instance.mdp, uniform, agnostic_size, random);
  instance.deterministic_expert =
      sample_trajectory(instance.mdp, instance.experts.deterministic, expert_size, random);
  return instance;
}

void replay_published(const std::function<bool(const CellKey&, int, Instance&&)>& visit) {
  LegacyRandom random(kPublishedSeed);
  for (const int agnostic_size : {10, 100, 1000, 10000})
    for (const int expert_size : {10, 100, 1000, 10000})
      for (const double eta : {0.01, 0.1, 1.0})
        for (int index = 0; index < kPublishedInstances; ++index) {
          const RandomMdpOptions options{.eta = eta};
          auto instance = draw_instance(options, expert_size, agnostic_size, random);
          if (!visit({expert_size, agnostic_size, eta}, index, std::move(instance))) return;
        }
}

}  // namespace pwdice::tabular
