// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The data set in a backend's memory and the draws of a training step from it. Nothing here allocates after
// the constructor or touches the host, so all draws may stand inside a captured step. Draws are functions of
// (seed, stream, step): see kernels/sample.h.

#include <memory>

#include "../host/arena.h"
#include "../kernels/gather.h"
#include "../kernels/sample.h"
#include "mixture.h"

namespace pwdice {

// Owns the tables. On the CPU it keeps the vectors it was given (no copy); for a GPU it uploads and frees
// them.
class DataTables {
 public:
  DataTables(Context& ctx, Mixture&& mixture, double gamma);
  DataTables(DataTables&&) = default;
  DataTables& operator=(DataTables&&) = default;

  int64_t transitions() const { return next_.size; }
  int64_t state_dim() const { return states_.cols; }
  int64_t action_dim() const { return actions_.cols; }

  Mat<const float> states() const { return states_; }      // (rows >= n, S): s of transition i in row i
  Vec<const int32_t> next() const { return next_; }        // (n) row of s'
  Mat<const float> actions() const { return actions_; }    // (n, A)
  Vec<const float> discount() const { return discount_; }  // (n) gamma (1 - done)
  Mat<const float> initial_states() const { return initial_; }  // first states of the trajectories of I, E or both
  int64_t live_count() const { return live_count_; }
  Vec<const int32_t> live() const { return live_; }  // transitions with done = 0; no table if all are
  Mat<const float> expert_states() const { return expert_; }           // (m, S)
  Vec<const float> expert_weight() const { return weight_; }           // (m) rho_E
  Vec<const double> expert_cumulative() const { return cumulative_; }  // (m)

  const StateMap& state_map() const { return state_map_; }        // host memory
  const std::vector<uint8_t>& source() const { return source_; }  // host memory, (n)
  const std::vector<int32_t>& step() const { return step_; }      // host memory, (n) within the episode
  size_t bytes() const { return bytes_; }                         // of everything above

 private:
  template <class T>
  Vec<const T> keep(Context& ctx, std::vector<T>&& values);

  Mat<const float> states_, actions_, expert_, initial_;
  Vec<const int32_t> next_, live_;
  Vec<const float> discount_, weight_;
  Vec<const double> cumulative_;
  StateMap state_map_;
  std::vector<uint8_t> source_;
  std::vector<int32_t> step_;
  std::vector<std::shared_ptr<const void>> owned_;
  int64_t live_count_ = 0;
  size_t bytes_ = 0;
};

// Which random numbers: the stream of the draw and the step counter in the backend's memory.
struct Draw {
  RandomStream stream;
  Vec<const uint64_t> step;  // (1)
};

// Each draw gives numbers of transitions, which are also the rows of their s.
void draw_transitions(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index);  // uniform
void draw_shuffled(Context& ctx, const DataTables& data, const Draw& draw,
                   Vec<int32_t> index);                                                      // passes over I
void draw_live(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index);  // done = 0 only
// In proportion to weights of the n transitions, given by their cumulative sum.
void draw_weighted(Context& ctx, const Draw& draw, Vec<const double> cumulative, Vec<int32_t> index);

void draw_initial(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index);  // of initial_states()

// Rows of expert_states(): in proportion to rho_E, or uniform.
void draw_expert(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index);
void draw_expert_uniform(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index);

// Rows of s' of the drawn transitions, for the state table and for every table computed from it.
void next_rows(Context& ctx, const DataTables& data, Vec<const int32_t> index, Vec<int32_t> row);

}  // namespace pwdice
