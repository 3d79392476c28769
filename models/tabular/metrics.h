// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <span>

#include "mdp.h"

namespace pwdice::tabular {

// Read-out: pi(a|s) = d(s,a) / sum_a d(s,a), uniform where a state carries less than `zero_mass`.
enum class Negatives { Clip, Keep };
constexpr double kPolicyZeroMass = 1e-12;
Policy policy_from_occupancy(std::span<const double> d_sa, int n_actions, Negatives negatives,
                             double zero_mass = kPolicyZeroMass);

// Exact, in the true MDP, against the true expert policy.
//   regret = d^E(goal) - d^pi(goal), occupancies normalised to one
//   tv_s, tv_ss: plain L1 norms as published, without the factor 1/2;  d(s,s') = sum_a d(s,a) T(s'|s,a)
struct Metrics {
  double regret = 0, tv_s = 0, tv_ss = 0;
};
Metrics evaluate(const Mdp& mdp, const Policy& expert, const Policy& learner);

}  // namespace pwdice::tabular
