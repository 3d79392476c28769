// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// A run of the trainer that takes seconds when every instruction is executed by a program.

#include "../../datasets/maze.h"
#include "../../models/pwdice.h"

namespace pwdice::test {

inline Config tiny_config() {
  Config config;
  config.threads = 2;
  for (const auto& [key, value] : {std::pair{"contrastive.steps", "4"},
                                   {"contrastive.batch", "48"},
                                   {"discriminator.steps", "4"},
                                   {"discriminator.batch", "16"},
                                   {"dual.steps", "4"},
                                   {"dual.batch", "16"},
                                   {"dual.init_batch", "8"},
                                   {"policy.start", "1"},
                                   {"policy.batch", "16"},
                                   {"policy.weights_every", "2"}}) {
    set_value(config, key, value);
  }
  return config;
}

inline Mixture tiny_mixture(AbsorbingRule absorbing = AbsorbingRule::None) {
  MixtureSpec spec;
  spec.absorbing = absorbing;
  spec.expert_episode = 0;
  spec.max_episode_steps = make_maze()->info().max_steps;
  spec.weighting = ExpertWeighting::ExpTail;
  const MazeDataOptions options{.seed = 1, .transitions = 300};
  std::vector<Episodes> offline;
  offline.push_back(maze_offline_data(options));
  return build_mixture(maze_expert_data(options), std::move(offline), spec);
}

}  // namespace pwdice::test
