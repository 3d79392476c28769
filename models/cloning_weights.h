// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <vector>

namespace pwdice {

// What behaviour cloning makes of the weights w = d / d_I before it draws in proportion to them.
//
//   1  log v_i = power * mean of log w over transition i and those that follow it in its episode, `lookahead` in all
//   2  with balanced steps, for the transitions of each step t of their episodes:
//      v_i = min(v_i, the value above which the share `cap` of the step's mass lies), and then v_i / (their sum)
//
// Episodes begin alike, whoever acts. In states that the expert shares with everybody one transition tells little about
// where it leads, noise in the potentials decides its weight, and other people's transitions outnumber the expert's; a few
// steps later the states have parted and the weights are sure. Looking ahead lets those speak for the actions that led
// there, and as a mean over many transitions has little noise it can be sharpened by a power (which does what a smaller
// eps2 would). Balanced steps give every moment of an episode the same mass, the first ones above all, and cut weights keep
// a few transitions from standing for all. Weights that are all zero in a step stay zero.
struct CloningWeights {
  double power = 1;
  int64_t lookahead = 1;
  bool balanced = false;
  double cap = 0.97;

  bool change_nothing() const { return power == 1 && !balanced && lookahead == 1; }
};

// `step`: of each transition within its episode; a transition follows the one before it where the step grows.
void shape_weights(const CloningWeights& how, const std::vector<int32_t>& step, std::vector<float>& w);

}  // namespace pwdice
