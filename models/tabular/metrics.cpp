// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "metrics.h"

#include <algorithm>
#include <cmath>

#include "../../kernels/error.h"

namespace pwdice::tabular {

Policy policy_from_occupancy(std::span<const double> d_sa, int n_actions, Negatives negatives,
                             double zero_mass) {
  const size_t m = static_cast<size_t>(n_actions);
  PWDICE_CHECK(n_actions > 0 && d_sa.size() % m == 0, "policy: {} masses do not divide into {} actions",
               d_sa.size(), n_actions);
  Policy policy(d_sa.size());
  for (size_t first = 0; first < d_sa.size(); first += m) {
    double sum = 0;
    for (size_t a = 0; a < m; ++a) {
      const double d = d_sa[first + a];
      sum += policy[first + a] = negatives == Negatives::Clip ? std::max(d, 0.0) : d;
    }
    for (size_t a = 0; a < m; ++a)
      policy[first + a] = sum < zero_mass ? 1.0 / n_actions : policy[first + a] / sum;
  }
  return policy;
}

Metrics evaluate(const Mdp& mdp, const Policy& expert, const Policy& learner) {
  const auto d_expert = occupancy(mdp.transitions, mdp.p0, mdp.gamma, expert);
  const auto d_learner = occupancy(mdp.transitions, mdp.p0, mdp.gamma, learner);
  const size_t n = static_cast<size_t>(mdp.n_states()), m = static_cast<size_t>(mdp.n_actions());

  Metrics metrics;
  std::vector<double> pair(n);  // d^E(s,.) - d^pi(s,.), one row at a time
  for (size_t s = 0; s < n; ++s) {
    double state = 0, uniform = 0;
    std::fill(pair.begin(), pair.end(), 0.0);
    for (size_t row = s * m; row < (s + 1) * m; ++row) {
      const double difference = d_expert[row] - d_learner[row];
      state += difference;
      if (mdp.transitions.is_uniform(static_cast<int>(row))) uniform += difference / static_cast<double>(n);
      for (const auto& entry : mdp.transitions.entries(static_cast<int>(row)))
        pair[static_cast<size_t>(entry.next)] += difference * entry.probability;
    }
    metrics.tv_s += std::abs(state);
    for (const double value : pair) metrics.tv_ss += std::abs(value + uniform);
    if (static_cast<int>(s) == mdp.goal) metrics.regret = state;
  }
  return metrics;
}

}  // namespace pwdice::tabular
