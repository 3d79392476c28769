// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "transitions.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "../kernels/error.h"

namespace pwdice {

size_t Transitions::bytes() const {
  return (states.size() + actions.size()) * sizeof(float) + (next.size() + step.size()) * sizeof(int32_t) +
         done.size() + source.size();
}

void TransitionBuilder::add(const Episodes& data, const std::vector<EpisodeRange>& episodes, uint8_t source) {
  const int64_t state_dim = data.state_dim + (absorbing_ == AbsorbingRule::None ? 0 : 1);
  if (out_.state_dim == 0) {
    out_.state_dim = state_dim, out_.action_dim = data.action_dim;
    absorbing_state_.assign(state_dim, 0.f);
    absorbing_state_.back() = 1.f;
  }
  PWDICE_CHECK(state_dim == out_.state_dim && data.action_dim == out_.action_dim,
               "transitions: {} has {} observations and {} actions, the data before it {} and {}",
               data.source, data.state_dim, data.action_dim, data.state_dim + out_.state_dim - state_dim,
               out_.action_dim);
  int64_t rows = out_.size();
  for (const EpisodeRange& episode : episodes) {
    rows += episode.length() + (absorbing_ != AbsorbingRule::None && episode.terminal ? 2 : 0);
  }
  // One allocation for the table, its tail included, when everything arrives in one call or in few.
  out_.states.reserve((rows + static_cast<int64_t>(episodes.size())) * out_.state_dim + tail_.size());
  out_.actions.reserve(rows * out_.action_dim);
  out_.next.reserve(rows), out_.step.reserve(rows), out_.done.reserve(rows), out_.source.reserve(rows);
  for (const EpisodeRange& episode : episodes) add_episode(data, episode, source);
}

void TransitionBuilder::add_episode(const Episodes& data, const EpisodeRange& episode, uint8_t source) {
  const auto observation = [&](int64_t i) { return data.observations.data() + i * data.state_dim; };
  const bool recorded = rule_ == TransitionRule::Exact && data.has_next();
  for (int64_t i = episode.begin; i < episode.end; ++i) {
    const bool last = i + 1 == episode.end;
    const bool done = data.terminals[i] != 0;
    const float* next = nullptr;
    if (recorded) {
      next = data.next_observations.data() + i * data.state_dim;
    } else if (rule_ == TransitionRule::Exact) {
      next = last ? nullptr : observation(i + 1);
    } else {
      if (i + 1 == data.rows() || (last && episode.timeout)) continue;
      next = observation(i + 1);
    }
    if (next == nullptr && !done) continue;
    const bool known = next != nullptr;
    const Step step{observation(i),
                    known ? next : observation(i),
                    data.actions.data() + i * data.action_dim,
                    done,
                    i - episode.begin,
                    source};
    done ? add_terminal(step, known) : add_step(step);
  }
}

// Widens recorded states by the absorbing flag where there is one.
void TransitionBuilder::add_step(const Step& step) {
  if (absorbing_ == AbsorbingRule::None) return add_row(step);
  Step wide = step;
  const float** ends[2] = {&wide.state, &wide.next};
  for (int k = 0; k < 2; ++k) {
    widened_[k].assign(*ends[k], *ends[k] + out_.state_dim - 1);
    widened_[k].push_back(0.f);
    *ends[k] = widened_[k].data();
  }
  add_row(wide);
}

void TransitionBuilder::add_terminal(const Step& step, bool next_known) {
  if (absorbing_ == AbsorbingRule::None) return add_row(step);
  const float* const absorbed = absorbing_state_.data();
  Step live = step;
  live.done = false;
  int64_t at = step.step;
  std::vector<float> before(step.state, step.state + out_.state_dim - 1);
  if (absorbing_ == AbsorbingRule::PwDice && next_known) {
    add_step(live);
    before.assign(step.next, step.next + out_.state_dim - 1);
    ++at;
  }
  before.push_back(0.f);
  add_row({before.data(), absorbed, step.action, false, at, step.source});
  add_row({absorbed, absorbed, step.action, true, at + 1, step.source});
}

void TransitionBuilder::add_row(const Step& step) {
  const size_t bytes = static_cast<size_t>(out_.state_dim) * sizeof(float);
  settle_pending(step.state);
  PWDICE_CHECK(out_.size() + static_cast<int64_t>(tail_.size()) / out_.state_dim < (int64_t{1} << 31) - 2,
               "transitions: more than {} states", std::numeric_limits<int32_t>::max());
  const int32_t self = static_cast<int32_t>(out_.size());
  out_.states.insert(out_.states.end(), step.state, step.state + out_.state_dim);
  out_.actions.insert(out_.actions.end(), step.action, step.action + out_.action_dim);
  out_.next.push_back(self);
  out_.done.push_back(step.done);
  out_.step.push_back(static_cast<int32_t>(step.step));
  out_.source.push_back(step.source);
  if (std::memcmp(step.state, step.next, bytes) != 0) pending_.assign(step.next, step.next + out_.state_dim);
}

// s' of the last transition is a row of its own only if the following transition does not start there. Rows
// of the tail are numbered -1, -2, .. until take() knows where it begins.
void TransitionBuilder::settle_pending(const float* following) {
  if (pending_.empty()) return;
  const size_t bytes = pending_.size() * sizeof(float);
  if (following != nullptr && std::memcmp(pending_.data(), following, bytes) == 0) {
    out_.next.back() = static_cast<int32_t>(out_.size());
  } else {
    tail_.insert(tail_.end(), pending_.begin(), pending_.end());
    out_.next.back() = -static_cast<int32_t>(static_cast<int64_t>(tail_.size()) / out_.state_dim);
  }
  pending_.clear();
}

Transitions TransitionBuilder::take() {
  settle_pending(nullptr);
  const int32_t n = static_cast<int32_t>(out_.size());
  for (int32_t& row : out_.next) row = row < 0 ? n - 1 - row : row;
  out_.states.insert(out_.states.end(), tail_.begin(), tail_.end());
  tail_.clear();
  return std::exchange(out_, {});
}

Transitions build_transitions(const Episodes& data, TransitionRule rule, AbsorbingRule absorbing,
                              int64_t max_episode_steps) {
  TransitionBuilder builder(rule, absorbing);
  builder.add(data, find_episodes(data, max_episode_steps), 0);
  return builder.take();
}

}  // namespace pwdice
