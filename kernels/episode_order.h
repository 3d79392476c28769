// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <vector>

namespace pwdice {

// How transitions hang together, in host memory: what CloningWeights wants to know of its data.
struct EpisodeOrder {
  std::vector<int32_t> end;         // (n) one past the last transition of i's episode
  std::vector<int32_t> order;       // (n) the transitions sorted by step, equal steps as they come
  std::vector<int32_t> step_begin;  // (steps + 1) where each step's transitions begin in `order`
};

// `step`: of each transition within its episode; a transition follows the one before it where the step grows.
EpisodeOrder order_episodes(const std::vector<int32_t>& step);

}  // namespace pwdice
