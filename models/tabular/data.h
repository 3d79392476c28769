// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "mdp.h"

namespace pwdice::tabular {

struct Transition {
  int state, action, next;
};
using Trajectory = std::vector<Transition>;

// One trajectory of `length` transitions from p0, without restart; 1 + 2 length uniforms.
Trajectory sample_trajectory(const Mdp& mdp, const Policy& policy, int length, LegacyRandom& random);

// T_hat: counts, uniform over all states for an unseen (s,a).  pi: counts, uniform for an unseen state.
TransitionModel estimate_transitions(std::span<const Transition> data, int n_states, int n_actions);
Policy estimate_behaviour(std::span<const Transition> data, int n_states, int n_actions);

// d^E(s): weight gamma^t on the state at time t, normalised; the final successor is not counted.
std::vector<double> estimate_expert_states(std::span<const Transition> data, int n_states, double gamma);
// d^E(s,s'): the same weights on the pairs, (n_states, n_states) row-major.
std::vector<double> estimate_expert_pairs(std::span<const Transition> data, int n_states, double gamma);

// c(i,j): i is the learner's state, j the expert's. The default 1[i != j] is computed, never stored.
struct Cost {
  std::vector<double> table;  // (n, n), or empty for the indicator
  size_t n = 0;
  double operator()(size_t i, size_t j) const {
    return table.empty() ? (i != j ? 1.0 : 0.0) : table[i * n + j];
  }
};

// What every solver takes: estimates only, nothing of the true MDP.
struct Problem {
  TransitionModel model;   // T_hat
  std::vector<double> p0;  // (n)
  double gamma = 0.95;
  std::vector<double> agnostic_sa;  // d^I(s,a): occupancy of the behaviour policy in T_hat
  std::vector<double> agnostic_s;   // d^I(s)
  std::vector<double> expert_s;     // d^E(s)
  std::vector<double> expert_ss;    // d^E(s,s'), (n, n); only LobsDICE reads it, may be empty otherwise
  Cost cost;

  size_t n_states() const { return p0.size(); }
  size_t n_actions() const { return static_cast<size_t>(model.n_actions()); }
};

// Throws one sentence if sizes differ, a distribution does not sum to one, or a cost is not finite.
void check_problem(const Problem& problem);

// d^I is model-based: the exact occupancy of the counted behaviour policy in T_hat, not a visit frequency.
struct EstimateOptions {
  double gamma = 0.95;
  bool expert_pairs = true;  // n^2 numbers that only LobsDICE needs
};
Problem estimate_problem(std::span<const Transition> agnostic, std::span<const Transition> expert,
                         int n_actions, std::span<const double> p0, const EstimateOptions& options);

// One MDP with its three trajectories.
struct Instance {
  Mdp mdp;
  Experts experts;
  Trajectory agnostic, softmax_expert, deterministic_expert;
  const Trajectory& expert(ExpertKind kind) const {
    return kind == ExpertKind::Deterministic ? deterministic_expert : softmax_expert;
  }
};

// Order of the draws: MDP, softmax expert, agnostic (uniform policy), deterministic expert.
Instance draw_instance(const RandomMdpOptions& options, int expert_size, int agnostic_size,
                       LegacyRandom& random);

struct CellKey {
  int expert_size = 0, agnostic_size = 0;
  double eta = 0;
  bool operator==(const CellKey&) const = default;
};

// Replays the 480 published instances in stream order: agnostic size, expert size, eta, index.
// The stream is sequential, so skipping an instance still draws it; `visit` returning false ends the replay.
constexpr uint32_t kPublishedSeed = 1234567;
constexpr int kPublishedInstances = 10;
void replay_published(const std::function<bool(const CellKey&, int index, Instance&&)>& visit);

}  // namespace pwdice::tabular
