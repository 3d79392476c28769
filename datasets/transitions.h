// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <vector>

#include "episodes.h"

namespace pwdice {

// Which rows of a file become transitions, and what s' is.
enum class TransitionRule {
  // The published code: s' = observations[i + 1] even where next_observations exists; rows with a timeout and
  // the last row of the file are dropped. s' of a terminal row is the next episode's first state: never to be
  // read, (1 - done) masks it.
  Reference,
  // Nothing dropped that is known: s' = next_observations[i] where the file has it. Without it the last row
  // of
  // an episode is kept only if terminal, with s' = s, again masked.
  Exact,
};

// What follows a terminal transition (s, a, s'). The absorbing forms give every state one more dimension, 0
// except in the absorbing state (0, .., 0, 1), and repeat the action.
enum class AbsorbingRule {
  None,     // s -> s' with done = 1
  PwDice,   // s -> s', s' -> absorbing, then absorbing -> absorbing with done = 1
  Smodice,  // s -> absorbing, then absorbing -> absorbing with done = 1
};

// Task-agnostic transitions, struct of arrays. A state is stored once: s of transition i is row i of the
// table, and s' is row next_i, nearly always i + 1. Rows past n are the states that no transition starts
// from: the last ones of the episodes.
struct Transitions {
  int64_t state_dim = 0, action_dim = 0;
  std::vector<float> states;    // (table rows, state_dim), table rows >= n
  std::vector<int32_t> next;    // (n) row of s'
  std::vector<float> actions;   // (n, action_dim)
  std::vector<uint8_t> done;    // (n) 1 = terminal
  std::vector<int32_t> step;    // (n) within the episode; 0 = initial state
  std::vector<uint8_t> source;  // (n) which part of a mixture, for diagnostics only

  int64_t size() const { return static_cast<int64_t>(next.size()); }
  int64_t table_rows() const { return state_dim == 0 ? 0 : static_cast<int64_t>(states.size()) / state_dim; }
  Mat<const float> table() const { return {states.data(), table_rows(), state_dim}; }
  const float* state(int64_t i) const { return states.data() + i * state_dim; }
  const float* next_state(int64_t i) const { return states.data() + next[i] * state_dim; }
  size_t bytes() const;
};

// Collects episodes under one pair of rules.
class TransitionBuilder {
 public:
  TransitionBuilder(TransitionRule rule, AbsorbingRule absorbing) : rule_(rule), absorbing_(absorbing) {}

  // Throws InvalidArgument when the dimensions differ from what was added before.
  void add(const Episodes& data, const std::vector<EpisodeRange>& episodes, uint8_t source);
  Transitions take();

 private:
  struct Step {
    const float *state, *next, *action;
    bool done;
    int64_t step;
    uint8_t source;
  };
  void add_episode(const Episodes& data, const EpisodeRange& episode, uint8_t source);
  void add_step(const Step& step);  // as recorded
  void add_terminal(const Step& step, bool next_known);
  void add_row(const Step& step);  // of width state_dim
  void settle_pending(const float* following);

  TransitionRule rule_;
  AbsorbingRule absorbing_;
  Transitions out_;
  std::vector<float> tail_;     // states that no transition starts from
  std::vector<float> pending_;  // s' of the last transition until its row is known; empty = known
  std::vector<float> widened_[2], absorbing_state_;
};

// All episodes of one recording.
Transitions build_transitions(const Episodes& data, TransitionRule rule, AbsorbingRule absorbing,
                              int64_t max_episode_steps);

}  // namespace pwdice
