// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../kernels/view.h"

namespace pwdice {

// Recorded episodes exactly as a D4RL file holds them: one row per step, episodes one after another. A Minari
// file, the maze and a rollout arrive in the same form.
struct Episodes {
  std::string source;  // file or generator, for messages
  std::string env_id;  // empty when unknown
  int64_t state_dim = 0, action_dim = 0;
  std::vector<float> observations;       // (rows, state_dim)
  std::vector<float> actions;            // (rows, action_dim)
  std::vector<float> rewards;            // (rows), or empty
  std::vector<float> next_observations;  // (rows, state_dim), or empty
  std::vector<uint8_t> terminals;        // (rows) the environment ended the episode
  std::vector<uint8_t> timeouts;         // (rows) the time limit did; empty in old files

  int64_t rows() const { return static_cast<int64_t>(terminals.size()); }
  bool has_next() const { return !next_observations.empty(); }
  bool has_rewards() const { return !rewards.empty(); }
  Mat<const float> observation_rows() const { return {observations.data(), rows(), state_dim}; }
  Mat<const float> next_rows() const {
    return {next_observations.data(), has_next() ? rows() : 0, state_dim};
  }
  Mat<const float> action_rows() const { return {actions.data(), rows(), action_dim}; }
};

// Rows [begin, end) of one episode. Neither flag is set when the recording stops in the middle of it.
struct EpisodeRange {
  int64_t begin = 0, end = 0;
  bool terminal = false, timeout = false;

  int64_t length() const { return end - begin; }
};

// An episode ends where a terminal or a timeout is set. A file without timeouts ends one after
// max_episode_steps, the rule of the published code for old D4RL files.
std::vector<EpisodeRange> find_episodes(const Episodes& data, int64_t max_episode_steps);

// Throws BadFile in one sentence when the arrays disagree in length or hold NaN or infinity.
void check_episodes(const Episodes& data);

// Undiscounted return of each episode; rewards must be there.
std::vector<double> episode_returns(const Episodes& data, const std::vector<EpisodeRange>& episodes);

// The chosen episodes in the given order, or several recordings one after another. Optional columns survive
// only if every part has them; an episode that was cut off gets a timeout, so that no two run together.
Episodes select_episodes(const Episodes& data, const std::vector<EpisodeRange>& episodes);
Episodes concatenate(const std::vector<Episodes>& parts, int64_t max_episode_steps);

}  // namespace pwdice
