// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "data.h"
#include "solution.h"

namespace pwdice::tabular {

// SMODICE: min D(d(s,a), W) - sum_s d(s) R(s) under the Bellman flow, R = log((d^E+delta)/(d^I+delta)).
//   KL    D = KL(d, W),                      W = floor + d^I
//   chi2  D = 1/2 sum W (d/W - 1)^2, d >= 0  W = d^I, plus floor only if some entry is exactly 0 (as
//   published)
struct SmodiceOptions {
  double delta, floor;
};
constexpr SmodiceOptions kSmodiceKl{1e-5, 1e-10};
constexpr SmodiceOptions kSmodiceChi2{1e-12, 1e-10};

std::vector<double> smodice_reward(const Problem& problem, double delta);

Solution solve_smodice_kl(const Problem& problem, const SmodiceOptions& options = kSmodiceKl);
Solution solve_smodice_chi2(const Problem& problem, const SmodiceOptions& options = kSmodiceChi2);

// The same programme with a reward of the caller's, W = floor + d^I.
Solution solve_smodice_kl(const Problem& problem, std::span<const double> reward, double floor);

}  // namespace pwdice::tabular
