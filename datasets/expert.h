// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "episodes.h"
#include "transitions.h"

namespace pwdice {

// What the expert shows: states alone, no actions.
struct Expert {
  int64_t state_dim = 0;
  std::vector<float> states;           // (m, state_dim)
  std::vector<EpisodeRange> episodes;  // of `states`
  std::vector<float> weight;           // (m) rho_E: not negative, sums to 1

  int64_t size() const { return state_dim == 0 ? 0 : static_cast<int64_t>(states.size()) / state_dim; }
  Mat<const float> table() const { return {states.data(), size(), state_dim}; }
};

// rho_E, the expert's distribution over its states. j counts the steps of a trajectory from 0, K
// trajectories:
//   Uniform      1 / m
//   Exp          (1 - gamma) gamma^j, normalised: discounted occupancy of what was seen, no tail
//   ExpTail      Exp, and the last state of each trajectory takes its tail gamma^j, as if the expert stayed
//   there ExpCode      the published code: the counter is advanced before it is reset, so the first two
//   states of E
//                both have j = 0 and a later trajectory's first state continues the count of the one before;
//                only the very last state of E takes a tail. Normalised.
//   UniformGoal  half Uniform, half shared by the last states of the trajectories
//   ExpGoal      half ExpTail, half shared by the last states of the trajectories
enum class ExpertWeighting { Uniform, Exp, ExpTail, ExpCode, UniformGoal, ExpGoal };

ExpertWeighting expert_weighting(std::string_view name);  // "uniform", "exp", "exp_tail", "exp_code", ...
const char* name(ExpertWeighting weighting) noexcept;

std::vector<float> expert_weights(const std::vector<EpisodeRange>& episodes, ExpertWeighting weighting,
                                  double gamma);

// The states of the chosen episodes, timeout rows included. With an absorbing rule they gain the flag
// dimension, and a terminal episode ends in the states that the rule adds (PwDice: s', absorbing; Smodice:
// absorbing). Weights are left empty.
Expert build_expert(const Episodes& data, const std::vector<EpisodeRange>& episodes, AbsorbingRule absorbing);

}  // namespace pwdice
