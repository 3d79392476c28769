// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <vector>

namespace pwdice {

// What behaviour cloning makes of the weights w = d / d_I before it draws in proportion to them.
//
//   v_i = w_i^power,  then with balanced steps  v_i / (sum of v over the transitions of the same step of their episode)
//
// An episode starts once, so its first steps hold a mass of 1 - gamma of the occupancy, and the potentials, trained on
// batches, give them less still; a policy that never learned to start fails there, however well it would go on. A factor
// that depends on the step alone gives every moment of an episode the same mass and changes little in which action
// is preferred in a state. A power above 1 does what a smaller eps2 would: transitions of the same step are told apart
// more sharply. Weights that are all zero in a step stay zero.
struct WeightBalance {
  double power = 1;
  bool steps = false;

  bool changes_nothing() const { return power == 1 && !steps; }
};
void balance(const WeightBalance& how, const std::vector<int32_t>& step, std::vector<float>& w);

}  // namespace pwdice
