// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Episodes of a policy, recorded as a data set. Episode k is reset with seed + k and draws its noise from a
// stream of that seed, whichever thread plays it: the same options give the same rows on any number of
// threads.

#include "environment.h"

namespace pwdice {

// From an observation to an action; called by one thread at a time. An empty function acts uniformly at
// random.
using Controller = std::function<void(Vec<const float> observation, Vec<float> action)>;
using ControllerFactory = std::function<Controller()>;

struct CollectOptions {
  int64_t episodes = 0;     // this many, or
  int64_t transitions = 0;  // this many rows: the episode that reaches them is cut there, with a timeout
  uint64_t seed = 0;
  double noise = 0;  // deviation of Gaussian noise on the controller's actions
  int threads = 1;
};

struct Collection {
  Episodes data;
  std::vector<double> returns;  // of the episodes that were not cut
};

// One environment and one controller per thread. Actions are clamped to [-1, 1] and recorded as they were
// applied. A state that is not finite throws NotFinite with episode and step.
Collection collect(const EnvironmentFactory& make, const ControllerFactory& make_controller,
                   const CollectOptions& options);

}  // namespace pwdice
