// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Random MDP: per (s,a), in this order, k distinct successors; X one-hot over them; Y ~ Dirichlet(1,..,1);
// probabilities (1-eta) X + eta Y. Connectivity is not enforced, as in the published experiment.
#include "mdp.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../kernels/error.h"

namespace pwdice::tabular {
namespace {

constexpr double kValueTolerance = 1e-8;

TransitionModel draw_transitions(const RandomMdpOptions& options, LegacyRandom& random) {
  TransitionModel model(options.n_states, options.n_actions);
  for (int row = 0; row < model.n_rows(); ++row) {
    const auto successors = random.choose_distinct(options.n_states, options.n_successors);
    const auto x = random.one_hot(options.n_successors);
    const auto y = random.dirichlet_ones(options.n_successors);
    std::vector<TransitionModel::Entry> entries;
    for (size_t k = 0; k < successors.size(); ++k)
      entries.push_back({successors[k], (1 - options.eta) * x[k] + options.eta * y[k]});
    model.append_row(std::move(entries));
  }
  return model;
}

}  // namespace

const char* name(ExpertKind kind) { return kind == ExpertKind::Deterministic ? "deterministic" : "softmax"; }

OptimalValues value_iteration(const TransitionModel& transitions, double gamma, int goal) {
  const size_t n = static_cast<size_t>(transitions.n_states()),
               m = static_cast<size_t>(transitions.n_actions());
  PWDICE_CHECK(goal >= 0 && goal < transitions.n_states(),
               "value iteration: goal {} is not one of the {} states", goal, n);
  PWDICE_CHECK(gamma >= 0 && gamma < 1, "value iteration: gamma is {}, expected 0 <= gamma < 1", gamma);
  OptimalValues current{std::vector<double>(n), std::vector<double>(n * m)}, next = current;
  for (double change = 1; change >= kValueTolerance;) {
    const double mean = mean_of(current.v);
    change = 0;
    for (size_t s = 0; s < n; ++s) {
      const double reward = static_cast<int>(s) == goal ? 1 : 0;
      for (size_t a = 0; a < m; ++a)
        next.q[s * m + a] = reward + gamma * transitions.expect(static_cast<int>(s * m + a), current.v, mean);
      next.v[s] = *std::max_element(next.q.begin() + static_cast<std::ptrdiff_t>(s * m),
                                    next.q.begin() + static_cast<std::ptrdiff_t>((s + 1) * m));
      change = std::max(change, std::abs(next.v[s] - current.v[s]));
    }
    // The published experts are those of the iterate before the one that passed the test.
    if (change >= kValueTolerance) std::swap(current, next);
  }
  return current;
}

Experts experts_of(const OptimalValues& values, int n_actions) {
  const size_t m = static_cast<size_t>(n_actions);
  Experts experts{Policy(values.q.size()), Policy(values.q.size())};
  for (size_t first = 0; first < values.q.size(); first += m) {
    const double* q = values.q.data() + first;
    const double* best = std::max_element(q, q + m);
    experts.deterministic[first + static_cast<size_t>(best - q)] = 1;
    double sum = 0;
    for (size_t a = 0; a < m; ++a) sum += experts.softmax[first + a] = std::exp(q[a] - *best);
    for (size_t a = 0; a < m; ++a) experts.softmax[first + a] /= sum;
  }
  return experts;
}

RandomMdp make_random_mdp(const RandomMdpOptions& options, LegacyRandom& random) {
  PWDICE_CHECK(options.n_states >= 2, "random MDP: {} states, expected at least 2", options.n_states);
  PWDICE_CHECK(options.n_successors >= 1 && options.n_successors <= options.n_states,
               "random MDP: {} successors for {} states", options.n_successors, options.n_states);
  PWDICE_CHECK(options.eta >= 0 && options.eta <= 1, "random MDP: eta is {}, expected 0 <= eta <= 1",
               options.eta);
  RandomMdp result;
  Mdp& mdp = result.mdp;
  mdp.transitions = draw_transitions(options, random);
  mdp.gamma = options.gamma;
  mdp.p0.assign(static_cast<size_t>(options.n_states), 0.0);
  mdp.p0[0] = 1;

  const int last = options.goal_candidates > 0 ? std::min(options.goal_candidates, options.n_states - 1)
                                               : options.n_states - 1;
  OptimalValues hardest;
  double lowest = std::numeric_limits<double>::infinity();
  for (int goal = 1; goal <= last; ++goal) {
    auto values = value_iteration(mdp.transitions, options.gamma, goal);
    if (values.v[0] >= lowest) continue;
    lowest = values.v[0];
    hardest = std::move(values);
    mdp.goal = goal;
  }
  result.experts = experts_of(hardest, options.n_actions);
  return result;
}

}  // namespace pwdice::tabular
