// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../datasets/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../datasets/maze.h"
#include "../host/rng.h"
#include "../host/tensor.h"

namespace pwdice {
namespace {

Mixture small_mixture() {
  Episodes data;
  data.source = "test", data.state_dim = 1, data.action_dim = 1;
  for (int i = 0; i < 30; ++i) {  // three episodes of ten; the second ends in a terminal
    data.observations.push_back(static_cast<float>(i));
    data.next_observations.push_back(static_cast<float>(i) + 1);
    data.actions.push_back(static_cast<float>(i) / 30);
    data.terminals.push_back(i == 19);
    data.timeouts.push_back(i == 9 || i == 29);
  }
  MixtureSpec spec;
  spec.max_episode_steps = 10, spec.gamma = 0.8, spec.normalizer.enabled = false;
  return build_mixture(data, {data}, spec);
}

ContextOptions threads(int n) {
  ContextOptions options;
  options.threads = n;
  options.scratch_bytes = 1 << 20;
  return options;
}

std::vector<int32_t> drawn(Context& ctx, int64_t n,
                           const std::function<void(const Draw&, Vec<int32_t>)>& draw, uint64_t step = 0,
                           uint64_t seed = 1) {
  const StepCounter counter(ctx, step);
  const Array<int32_t> index(ctx, n);
  draw({random_stream(seed, "test"), counter.view()}, index.view());
  return download(ctx, index.view());
}

TEST(DataTables, TakesTheVectorsOverWithoutACopy) {
  Context ctx(threads(1));
  Mixture m = small_mixture();
  const float* states = m.offline.states.data();
  const DataTables data(ctx, std::move(m), 0.9);
  EXPECT_EQ(data.states().data, states);
  EXPECT_EQ(data.transitions(), 30);
  EXPECT_EQ(data.states().rows, 31);  // here an episode begins where the one before ended
  EXPECT_EQ(data.initial_states().rows, 3);
  EXPECT_EQ(data.live_count(), 29);
  EXPECT_EQ(data.discount()[19], 0.f);
  EXPECT_EQ(data.discount()[18], 0.9f);
  EXPECT_EQ(data.source().size(), 30u);
}

TEST(Sampler, DrawsWhatItSays) {
  Context ctx(threads(1));
  const DataTables data(ctx, small_mixture(), 0.9);
  const int64_t n = 60000;
  std::vector<int64_t> counts(30, 0);
  for (const int32_t i :
       drawn(ctx, n, [&](const Draw&d, Vec<int32_t> v) { draw_transitions(ctx, data, d, v); })) {
    ++counts[i];
  }
  for (const int64_t c : counts) EXPECT_NEAR(static_cast<double>(c), 2000, 5 * std::sqrt(2000.0));
  for (const int32_t i : drawn(ctx, n, [&](const Draw&d, Vec<int32_t> v) { draw_live(ctx, data, d, v); })) {
    EXPECT_NE(i, 19);
  }
  for (const int32_t i :
       drawn(ctx, 200, [&](const Draw&d, Vec<int32_t> v) { draw_initial(ctx, data, d, v); })) {
    ASSERT_TRUE(i >= 0 && i < 3);
    EXPECT_EQ(data.initial_states()(i, 0), data.states()(10 * i, 0));
  }
}

TEST(DataTables, InitialStatesAreThoseOfWhomTheMixtureNames) {
  Context ctx(threads(1));
  for (const auto& [initial, rows] : {std::pair{InitialStates::Agnostic, 3}, {InitialStates::Expert, 1}, {InitialStates::Both, 4}}) {
    Mixture mixture = small_mixture();
    mixture.initial = initial;
    const DataTables data(ctx, std::move(mixture), 0.9);
    ASSERT_EQ(data.initial_states().rows, rows);
    const float last = initial == InitialStates::Agnostic ? data.states()(20, 0) : data.expert_states()(0, 0);
    EXPECT_EQ(data.initial_states()(rows - 1, 0), last);
  }
}

TEST(Sampler, AShuffledPassVisitsEachTransitionOnce) {
  Context ctx(threads(2));
  const DataTables data(ctx, small_mixture(), 0.9);
  std::vector<int32_t> seen;
  for (uint64_t step = 0; step < 6; ++step) {  // batches of 5: one pass
    const auto part = drawn(
        ctx, 5, [&](const Draw& d, Vec<int32_t> v) { draw_shuffled(ctx, data, d, v); }, step);
    seen.insert(seen.end(), part.begin(), part.end());
  }
  std::sort(seen.begin(), seen.end());
  for (int32_t i = 0; i < 30; ++i) EXPECT_EQ(seen[i], i);
}

TEST(Sampler, ExpertStatesFollowTheirWeights) {
  Context ctx(threads(1));
  const DataTables data(ctx, small_mixture(), 0.9);
  const int64_t n = 100000;
  std::vector<double> share(10, 0);
  for (const int32_t i : drawn(ctx, n, [&](const Draw&d, Vec<int32_t> v) { draw_expert(ctx, data, d, v); })) {
    share[i] += 1.0 / static_cast<double>(n);
  }
  for (int j = 0; j < 10; ++j) {
    const double w = static_cast<double>(data.expert_weight()[j]);
    EXPECT_NEAR(share[j], w, 5 * std::sqrt(w / static_cast<double>(n))) << j;
  }
  for (const int32_t i :
       drawn(ctx, 50, [&](const Draw&d, Vec<int32_t> v) { draw_expert_uniform(ctx, data, d, v); })) {
    EXPECT_TRUE(i >= 0 && i < 10);
  }
}

TEST(Sampler, WeightedDrawsNeverPickWeightZero) {
  Context ctx(threads(1));
  const DataTables data(ctx, small_mixture(), 0.9);
  const Array<double> cumulative(ctx, 30);
  std::vector<double> sums;
  for (int i = 0; i < 30; ++i) sums.push_back((sums.empty() ? 0 : sums.back()) + (i % 3 == 0 ? 1 : 0));
  upload(ctx, cumulative.view(), sums);
  for (const int32_t i :
       drawn(ctx, 1000, [&](const Draw&d, Vec<int32_t> v) { draw_weighted(ctx, d, cumulative.view(), v); })) {
    EXPECT_EQ(i % 3, 0);
  }
}

TEST(Sampler, NextRowsLeadToNextStates) {
  Context ctx(threads(1));
  const DataTables data(ctx, small_mixture(), 0.9);
  const auto index =
      drawn(ctx, 500, [&](const Draw& d, Vec<int32_t> v) { draw_transitions(ctx, data, d, v); });
  const Array<int32_t> rows(ctx, 500);
  next_rows(ctx, data, {index.data(), 500}, rows.view());
  const std::vector<int32_t> next = download(ctx, rows.view());
  for (size_t k = 0; k < index.size(); ++k) {
    EXPECT_EQ(data.states()(next[k], 0), data.states()(index[k], 0) + 1);
  }
}

TEST(Sampler, SameBitsOnAnyNumberOfThreadsAndAfterResuming) {
  Context one(threads(1)), two(threads(2));
  const DataTables a(one, small_mixture(), 0.9), b(two, small_mixture(), 0.9);
  for (const uint64_t step : {uint64_t{0}, uint64_t{1} << 33}) {
    EXPECT_EQ(drawn(
                  one, 9999, [&](const Draw& d, Vec<int32_t> v) { draw_transitions(one, a, d, v); }, step),
              drawn(
                  two, 9999, [&](const Draw& d, Vec<int32_t> v) { draw_transitions(two, b, d, v); }, step));
    EXPECT_EQ(drawn(
                  one, 9999, [&](const Draw& d, Vec<int32_t> v) { draw_expert(one, a, d, v); }, step),
              drawn(
                  two, 9999, [&](const Draw& d, Vec<int32_t> v) { draw_expert(two, b, d, v); }, step));
  }
  const auto uniform = [&](const Draw& d, Vec<int32_t> v) { draw_transitions(one, a, d, v); };
  EXPECT_NE(drawn(one, 100, uniform, 0), drawn(one, 100, uniform, 1));
  EXPECT_NE(drawn(one, 100, uniform, 0, 1), drawn(one, 100, uniform, 0, 2));
}

}  // namespace
}  // namespace pwdice
