// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <vector>

#include "expert.h"
#include "state_map.h"
#include "transitions.h"

namespace pwdice {

// The paper's data: E = a few expert trajectories, states only; I = k more trajectories of the expert's file
// with actions, unlabelled, and everything in the other files.
enum class InitialStates { Agnostic, Expert, Both };  // whose trajectories' first states are p0

struct MixtureSpec {
  int64_t expert_episode = -1;  // first trajectory of E, counted from 0; -1 = the first of full length
  int64_t expert_episodes = 1;  // trajectories in E, from there on; -1 = all
  int64_t offline_expert = 0;   // k, counted from the start of the expert's file; -1 = all
  bool exclude_expert = true;   // E's own trajectories do not count among the k
  TransitionRule rule = TransitionRule::Exact;
  AbsorbingRule absorbing = AbsorbingRule::None;
  InitialStates initial = InitialStates::Agnostic;
  int64_t max_episode_steps = 1000;
  ExpertWeighting weighting = ExpertWeighting::Exp;
  double gamma = 0.998;  // of the weighting
  NormalizerOptions normalizer;
  double distortion = 0;  // deviation of the random matrix, 4 in the paper; 0 = states as they are
  uint64_t distortion_seed = 0;
};

// Which episodes of the expert's file go where.
struct ExpertSplit {
  std::vector<EpisodeRange> expert, offline;
};
ExpertSplit split_expert(const Episodes& expert, const MixtureSpec& spec);

struct Mixture {
  Transitions offline;  // I; source 0 = from the expert's file, 1, 2, .. = the other recordings
  Expert expert;        // E
  StateMap state_map;   // already applied to both
  InitialStates initial = InitialStates::Agnostic;
};

// Each recording of `offline` is released as soon as it has been copied into the table.
Mixture build_mixture(const Episodes& expert, std::vector<Episodes> offline, const MixtureSpec& spec);

}  // namespace pwdice
