// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

// What behaviour cloning makes of the weights w = d / d_I before it draws in proportion to them.
//
//   1  log v_i = power * mean of log w over transition i and those that follow it in its episode, `lookahead` in all
//   2  balanced: for the transitions of each step t of their episodes,
//      v_i = min(v_i, the value above which the share `cap` of the step's mass lies), and then v_i / (their sum)
//   3  w = v / max v;     all 1 when nobody has a weight (early chi2 potentials may give nobody one)
//
// Episodes begin alike, whoever acts. In states that the expert shares with everybody one transition tells little
// about where it leads, noise in the potentials decides its weight, and other people's transitions outnumber the
// expert's; a few steps later the states have parted and the weights are sure. Looking ahead lets those speak for
// the actions that led there, and as a mean over many transitions has little noise it can be sharpened by a power
// (which does what a smaller eps2 would). Balanced steps give every moment of an episode the same mass, the first
// ones above all, and cut weights keep a few transitions from standing for all.
//
// Of the transitions ahead a single zero counts as the smallest float; where all are zero, v = 0. Weights that are
// all zero in a step stay zero. On the CPU a weight that is negative or not finite is an error, as is a transition or
// step out of its range; on a GPU NaN in any w makes all of them NaN.
struct CloningWeights {
  int64_t lookahead = 1;
  float power = 1;
  bool balanced = false;
  float cap = 0.97f;
  Vec<const int32_t> end;         // (n) one past the last transition of i's episode, up to n; lookahead > 1 only
  Vec<const int32_t> order;       // (n) the transitions, each once, sorted by step; balanced only
  Vec<const int32_t> step_begin;  // (steps + 1) where a step begins in `order`, from 0 to n; balanced only
  Vec<float> w;                   // in and out (n), not negative

  bool changes_nothing() const { return lookahead == 1 && power == 1 && !balanced; }  // but w / max w
};
// The transitions ahead of i, itself included: [i, this).
PWDICE_HD inline int64_t cloning_horizon(const CloningWeights& op, int64_t i) {
  if (op.lookahead == 1) return i + 1;
  return op.end[i] < i + op.lookahead ? op.end[i] : i + op.lookahead;
}
void cloning_weights(Context& ctx, const CloningWeights& op);

size_t cloning_weights_scratch_bytes(int64_t n);

}  // namespace pwdice
