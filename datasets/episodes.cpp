// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "episodes.h"

#include <cmath>

#include "../kernels/error.h"

namespace pwdice {
namespace {

void check_length(const Episodes& data, const char* column, size_t values, int64_t width) {
  const int64_t expected = data.rows() * width;
  if (static_cast<int64_t>(values) != expected) {
    fail(ErrorCode::BadFile, "{}: {} has {} values, expected {} rows of {}", data.source, column, values,
         data.rows(), width);
  }
}

void check_finite(const Episodes& data, const char* column, const std::vector<float>& values, int64_t width) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      const int64_t at = static_cast<int64_t>(i);
      fail(ErrorCode::BadFile, "{}: {} is {} in row {}, column {}", data.source, column, values[i],
           at / width, at % width);
    }
  }
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from, int64_t begin, int64_t end, int64_t width) {
  to.insert(to.end(), from.begin() + begin * width, from.begin() + end * width);
}

// One range of rows; the columns that `to` does not have are left out.
void append_rows(Episodes& to, const Episodes& from, const EpisodeRange& range, bool rewards, bool next) {
  append(to.observations, from.observations, range.begin, range.end, from.state_dim);
  append(to.actions, from.actions, range.begin, range.end, from.action_dim);
  append(to.terminals, from.terminals, range.begin, range.end, 1);
  if (rewards) append(to.rewards, from.rewards, range.begin, range.end, 1);
  if (next) append(to.next_observations, from.next_observations, range.begin, range.end, from.state_dim);
  to.timeouts.resize(to.terminals.size(), 0);
  to.timeouts.back() = range.timeout || !range.terminal;
}

}  // namespace

std::vector<EpisodeRange> find_episodes(const Episodes& data, int64_t max_episode_steps) {
  PWDICE_CHECK(max_episode_steps > 0, "find_episodes: max_episode_steps is {}", max_episode_steps);
  std::vector<EpisodeRange> episodes;
  int64_t begin = 0;
  for (int64_t i = 0; i < data.rows(); ++i) {
    const bool terminal = data.terminals[i] != 0;
    const bool timeout = data.timeouts.empty() ? i - begin == max_episode_steps - 1 : data.timeouts[i] != 0;
    if (terminal || timeout || i + 1 == data.rows()) {
      episodes.push_back({begin, i + 1, terminal, timeout});
      begin = i + 1;
    }
  }
  return episodes;
}

void check_episodes(const Episodes& data) {
  if (data.state_dim < 1) fail(ErrorCode::BadFile, "{}: observations have no columns", data.source);
  check_length(data, "observations", data.observations.size(), data.state_dim);
  check_length(data, "actions", data.actions.size(), data.action_dim);
  if (data.has_rewards()) check_length(data, "rewards", data.rewards.size(), 1);
  if (data.has_next()) check_length(data, "next_observations", data.next_observations.size(), data.state_dim);
  if (!data.timeouts.empty()) check_length(data, "timeouts", data.timeouts.size(), 1);
  check_finite(data, "observations", data.observations, data.state_dim);
  check_finite(data, "actions", data.actions, data.action_dim);
  check_finite(data, "rewards", data.rewards, 1);
  check_finite(data, "next_observations", data.next_observations, data.state_dim);
}

std::vector<double> episode_returns(const Episodes& data, const std::vector<EpisodeRange>& episodes) {
  PWDICE_CHECK(data.has_rewards(), "episode_returns: {} has no rewards", data.source);
  std::vector<double> returns;
  for (const EpisodeRange& episode : episodes) {
    double sum = 0;
    for (int64_t i = episode.begin; i < episode.end; ++i) sum += static_cast<double>(data.rewards[i]);
    returns.push_back(sum);
  }
  return returns;
}

Episodes select_episodes(const Episodes& data, const std::vector<EpisodeRange>& episodes) {
  Episodes out;
  out.source = data.source, out.env_id = data.env_id;
  out.state_dim = data.state_dim, out.action_dim = data.action_dim;
  for (const EpisodeRange& episode : episodes) {
    PWDICE_CHECK(episode.begin >= 0 && episode.begin < episode.end && episode.end <= data.rows(),
                 "select_episodes: rows {} to {} of {}", episode.begin, episode.end, data.rows());
    append_rows(out, data, episode, data.has_rewards(), data.has_next());
  }
  return out;
}

Episodes concatenate(const std::vector<Episodes>& parts, int64_t max_episode_steps) {
  PWDICE_CHECK(!parts.empty(), "concatenate: nothing to put together");
  const Episodes& first = parts.front();
  bool rewards = true, next = true;
  Episodes out;
  for (const Episodes& part : parts) {
    PWDICE_CHECK(part.state_dim == first.state_dim && part.action_dim == first.action_dim,
                 "concatenate: {} has {} observations and {} actions, {} has {} and {}", part.source,
                 part.state_dim, part.action_dim, first.source, first.state_dim, first.action_dim);
    rewards = rewards && part.has_rewards();
    next = next && part.has_next();
    out.source += (out.source.empty() ? "" : " + ") + part.source;
  }
  out.env_id = first.env_id, out.state_dim = first.state_dim, out.action_dim = first.action_dim;
  for (const Episodes& part : parts) {
    for (const EpisodeRange& episode : find_episodes(part, max_episode_steps)) {
      append_rows(out, part, episode, rewards, next);
    }
  }
  return out;
}

}  // namespace pwdice
