// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "sampler.h"

#include <utility>

#include "../host/tensor.h"

namespace pwdice {

template <class T>
Vec<const T> DataTables::keep(Context& ctx, std::vector<T>&& values) {
  const int64_t n = static_cast<int64_t>(values.size());
  bytes_ += values.size() * sizeof(T);
  if (!ctx.on_gpu()) {
    const auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    owned_.push_back(owner);
    return {owner->data(), n};
  }
  const auto owner = std::make_shared<const Array<T>>(ctx, n);
  upload(ctx, owner->view(), values);
  owned_.push_back(owner);
  std::vector<T>().swap(values);
  return owner->view();
}

// The first states of the trajectories that p0 is made of, row after row.
static std::vector<float> first_states(const Mixture& mixture) {
  const Transitions& data = mixture.offline;
  const Expert& expert = mixture.expert;
  std::vector<float> out;
  const auto take = [&](const std::vector<float>& states, int64_t row) {
    const auto begin = states.begin() + row * data.state_dim;
    out.insert(out.end(), begin, begin + data.state_dim);
  };
  if (mixture.initial != InitialStates::Expert) {
    for (int64_t i = 0; i < data.size(); ++i) {
      if (data.step[i] == 0) take(data.states, i);
    }
  }
  if (mixture.initial != InitialStates::Agnostic) {
    for (const EpisodeRange& episode : expert.episodes) take(expert.states, episode.begin);
  }
  PWDICE_CHECK(!out.empty(), "data tables: no initial state among {} transitions and {} expert states", data.size(),
               expert.size());
  return out;
}

DataTables::DataTables(Context& ctx, Mixture&& mixture, double gamma) {
  PWDICE_CHECK(mixture.offline.size() > 0 && mixture.expert.size() > 0,
               "data tables: {} transitions and {} expert states", mixture.offline.size(), mixture.expert.size());
  PWDICE_CHECK(mixture.offline.state_dim == mixture.expert.state_dim,
               "data tables: states of {} dimensions, expert states of {}", mixture.offline.state_dim,
               mixture.expert.state_dim);
  std::vector<float> initial = first_states(mixture);
  Transitions data = std::move(mixture.offline);
  Expert expert = std::move(mixture.expert);
  PWDICE_CHECK(expert.weight.size() == static_cast<size_t>(expert.size()),
               "data tables: {} weights for {} expert states", expert.weight.size(), expert.size());
  std::vector<int32_t> live;
  std::vector<float> discount;
  for (int64_t i = 0; i < data.size(); ++i) {
    if (data.done[i] == 0) live.push_back(static_cast<int32_t>(i));
    discount.push_back(data.done[i] ? 0.f : static_cast<float>(gamma));
  }
  std::vector<double> cumulative;
  double sum = 0;
  for (const float w : expert.weight) cumulative.push_back(sum += static_cast<double>(w));

  const int64_t rows = data.table_rows(), n = data.size(), m = expert.size(), s = data.state_dim;
  states_ = {keep(ctx, std::move(data.states)).data, rows, s};
  actions_ = {keep(ctx, std::move(data.actions)).data, n, data.action_dim};
  expert_ = {keep(ctx, std::move(expert.states)).data, m, s};
  next_ = keep(ctx, std::move(data.next));
  const auto starts = static_cast<int64_t>(initial.size()) / s;
  initial_ = {keep(ctx, std::move(initial)).data, starts, s};
  // Without terminals every transition is live: no table needed.
  live_count_ = static_cast<int64_t>(live.size());
  if (live_count_ < n) live_ = keep(ctx, std::move(live));
  discount_ = keep(ctx, std::move(discount));
  weight_ = keep(ctx, std::move(expert.weight));
  cumulative_ = keep(ctx, std::move(cumulative));
  state_map_ = std::move(mixture.state_map);
  source_ = std::move(data.source);
  step_ = std::move(data.step);
  bytes_ += source_.size() + step_.size() * sizeof(int32_t);
}

void draw_transitions(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index) {
  sample_uniform(ctx, {draw.stream, draw.step, data.transitions(), index});
}

void draw_shuffled(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index) {
  sample_shuffled(ctx, {draw.stream, draw.step, data.transitions(), index});
}

void draw_live(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index) {
  PWDICE_CHECK(data.live_count() > 0, "draw_live: every transition is terminal");
  sample_uniform(ctx, {draw.stream, draw.step, data.live_count(), index});
  if (data.live().data != nullptr) gather_indices(ctx, {data.live(), index, index});
}

void draw_initial(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index) {
  sample_uniform(ctx, {draw.stream, draw.step, data.initial_states().rows, index});
}

void draw_weighted(Context& ctx, const Draw& draw, Vec<const double> cumulative, Vec<int32_t> index) {
  sample_weighted(ctx, {draw.stream, draw.step, cumulative, index});
}

void draw_expert(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index) {
  sample_weighted(ctx, {draw.stream, draw.step, data.expert_cumulative(), index});
}

void draw_expert_uniform(Context& ctx, const DataTables& data, const Draw& draw, Vec<int32_t> index) {
  sample_uniform(ctx, {draw.stream, draw.step, data.expert_states().rows, index});
}

void next_rows(Context& ctx, const DataTables& data, Vec<const int32_t> index, Vec<int32_t> row) {
  gather_indices(ctx, {data.next(), index, row});
}

}  // namespace pwdice
