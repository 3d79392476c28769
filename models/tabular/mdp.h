// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <vector>

#include "legacy_random.h"
#include "model.h"

namespace pwdice::tabular {

enum class ExpertKind { Deterministic, Softmax };
const char* name(ExpertKind kind);

// A Markov decision process with reward 1 for being in `goal` (not for entering it); no termination.
struct Mdp {
  TransitionModel transitions;
  std::vector<double> p0;
  double gamma = 0.95;
  int goal = 0;

  int n_states() const { return transitions.n_states(); }
  int n_actions() const { return transitions.n_actions(); }
};

struct RandomMdpOptions {
  int n_states = 20;
  int n_actions = 4;
  int n_successors = 4;
  double eta = 0.1;  // share of the Dirichlet part; 1 - eta goes to one random successor
  double gamma = 0.95;
  int goal_candidates = 0;  // 0: all states but the start; otherwise the first so many of them (large models)
};

struct Experts {
  Policy deterministic;  // argmax of the optimal Q
  Policy softmax;        // softmax of the optimal Q at temperature 1
  const Policy& of(ExpertKind kind) const {
    return kind == ExpertKind::Deterministic ? deterministic : softmax;
  }
};

struct RandomMdp {
  Mdp mdp;
  Experts experts;
};

// Draws the transitions, then picks as goal the state other than 0 with the smallest optimal value at the
// start 0.
RandomMdp make_random_mdp(const RandomMdpOptions& options, LegacyRandom& random);

struct OptimalValues {
  std::vector<double> v;  // (n_states)
  std::vector<double> q;  // (n_states, n_actions)
};

// Q(s,a) = 1[s = goal] + gamma sum_s' T(s'|s,a) V(s'), V = max_a Q, until V changes by less than 1e-8.
OptimalValues value_iteration(const TransitionModel& transitions, double gamma, int goal);

Experts experts_of(const OptimalValues& values, int n_actions);

}  // namespace pwdice::tabular
