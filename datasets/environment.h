// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "episodes.h"

namespace pwdice {

struct EnvironmentInfo {
  std::string name;  // env_id of files and policies, for example "Hopper-v4"
  int64_t observation_dim = 0, action_dim = 0;
  int64_t max_steps = 0;  // time limit of an episode
  // Returns that count as 0 and 100 on the normalised scale.
  double random_return = 0, expert_return = 1;

  double normalised_score(double episode_return) const {
    return 100 * (episode_return - random_return) / (expert_return - random_return);
  }
};

struct StepResult {
  double reward = 0;
  bool terminated = false;  // the task ended; the time limit is the caller's
};

// A simulated task. Actions lie in [-1, 1]. One object is used by one thread at a time; after reset(seed) it
// behaves the same every time.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual const EnvironmentInfo& info() const = 0;
  virtual void reset(uint64_t seed, Vec<float> observation) = 0;
  virtual StepResult step(Vec<const float> action, Vec<float> observation) = 0;
};

using EnvironmentFactory = std::function<std::unique_ptr<Environment>()>;

// Row i is the observation of episode i, and its action. The number of rows is the same in every call: rows
// of episodes that are over repeat their last observation. Called from the caller's thread.
using Policy = std::function<void(Mat<const float> observations, Mat<float> actions)>;

struct RolloutOptions {
  int64_t episodes = 10;
  uint64_t seed = 0;  // episode k is reset with seed + k
  int threads = 1;    // of the simulation; the result does not depend on it
};

struct Evaluation {
  std::vector<double> returns;   // per episode
  std::vector<int64_t> lengths;  // per episode
  double mean = 0, deviation = 0, least = 0, greatest = 0;
  double score = 0;  // the mean, normalised
};

// Plays all episodes side by side, one action batch per step. A state that is not finite throws NotFinite.
Evaluation evaluate(const EnvironmentFactory& make, const Policy& policy, const RolloutOptions& options);

// The same, recorded: episodes one after another, with rewards and next_observations.
Episodes rollout(const EnvironmentFactory& make, const Policy& policy, const RolloutOptions& options);

}  // namespace pwdice
