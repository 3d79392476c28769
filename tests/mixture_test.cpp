// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../datasets/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../kernels/error.h"

namespace pwdice {
namespace {

// `lengths` episodes; a negative length ends in a terminal. The state of step j of episode k is (10 k + j,
// 1).
Episodes recording(const std::vector<int>& lengths, const char* source = "test") {
  Episodes e;
  e.source = source;
  e.state_dim = 2, e.action_dim = 1;
  for (size_t k = 0; k < lengths.size(); ++k) {
    const int n = std::abs(lengths[k]);
    for (int j = 0; j < n; ++j) {
      const float x = static_cast<float>(10 * static_cast<int>(k) + j);
      e.observations.insert(e.observations.end(), {x, 1});
      e.next_observations.insert(e.next_observations.end(), {x + 1, 1});
      e.actions.push_back(0.5f);
      e.terminals.push_back(j + 1 == n && lengths[k] < 0);
      e.timeouts.push_back(j + 1 == n && lengths[k] > 0);
    }
  }
  return e;
}

double total(const std::vector<float>& w) { return std::accumulate(w.begin(), w.end(), 0.0); }

std::vector<EpisodeRange> ranges(const std::vector<int64_t>& lengths) {
  std::vector<EpisodeRange> out;
  int64_t begin = 0;
  for (const int64_t n : lengths) {
    out.push_back({begin, begin + n, false, true});
    begin += n;
  }
  return out;
}

TEST(ExpertWeights, EveryVariantSumsToOne) {
  for (const char* variant : {"uniform", "exp", "exp_tail", "exp_code", "uniform_goal", "exp_goal"}) {
    EXPECT_STREQ(name(expert_weighting(variant)), variant);
    for (const auto& lengths : {std::vector<int64_t>{1}, {1000}, {7, 1, 30}}) {
      const std::vector<float> w = expert_weights(ranges(lengths), expert_weighting(variant), 0.99);
      EXPECT_NEAR(total(w), 1, 1e-5) << variant;
      EXPECT_TRUE(std::all_of(w.begin(), w.end(), [](float x) { return x > 0; })) << variant;
    }
  }
  EXPECT_THROW(expert_weighting("exponential"), Error);
  EXPECT_THROW(expert_weights({}, ExpertWeighting::Exp, 0.9), Error);
  EXPECT_THROW(expert_weights(ranges({5}), ExpertWeighting::Exp, 1.0), Error);
}

TEST(ExpertWeights, ExpIsDiscountedWithoutATail) {
  const std::vector<float> w = expert_weights(ranges({4, 3}), ExpertWeighting::Exp, 0.5);
  const double z = 1 + 0.5 + 0.25 + 0.125 + 1 + 0.5 + 0.25;
  const double expected[] = {1, 0.5, 0.25, 0.125, 1, 0.5, 0.25};
  for (int j = 0; j < 7; ++j) EXPECT_NEAR(w[j], expected[j] / z, 1e-7);
}

TEST(ExpertWeights, ExpTailEndsEachTrajectoryInItsTail) {
  const std::vector<float> w = expert_weights(ranges({3, 2}), ExpertWeighting::ExpTail, 0.5);
  const double expected[] = {0.5, 0.25, 0.25, 0.5, 0.5};  // each trajectory has mass 1 before normalisation
  for (int j = 0; j < 5; ++j) EXPECT_NEAR(w[j], expected[j] / 2, 1e-7);
}

// The figures of the published code: 36.8 % at 0.999 and 13.5 % at 0.998 on the last of 1000 states.
TEST(ExpertWeights, ExpCodeHasThePublishedQuirks) {
  EXPECT_NEAR(expert_weights(ranges({1000}), ExpertWeighting::ExpCode, 0.999).back(), 0.368, 5e-4);
  EXPECT_NEAR(expert_weights(ranges({1000}), ExpertWeighting::ExpCode, 0.998).back(), 0.135, 5e-4);
  const std::vector<float> w = expert_weights(ranges({4, 3}), ExpertWeighting::ExpCode, 0.5);
  // j = 0 0 1 2 | 3 0 1: the first two of E both 0, the second trajectory continues, only the last takes a
  // tail
  const double raw[] = {0.5, 0.5, 0.25, 0.125, 0.0625, 0.5, 0.5};
  const double z = std::accumulate(std::begin(raw), std::end(raw), 0.0);
  for (int j = 0; j < 7; ++j) EXPECT_NEAR(w[j], raw[j] / z, 1e-7) << j;
}

TEST(ExpertWeights, GoalVariantsPutHalfOnTheLastStates) {
  const std::vector<float> u = expert_weights(ranges({4, 4}), ExpertWeighting::UniformGoal, 0.9);
  EXPECT_NEAR(u[3], 0.25 + 0.0625, 1e-6);
  EXPECT_NEAR(u[0], 0.0625, 1e-6);
  const std::vector<float> e = expert_weights(ranges({3}), ExpertWeighting::ExpGoal, 0.5);
  EXPECT_NEAR(e[0], 0.25, 1e-6);
  EXPECT_NEAR(e[2], 0.125 + 0.5, 1e-6);
}

TEST(Expert, KeepsTheTimeoutRowAndAddsAbsorbingStates) {
  const Episodes data = recording({5, -3});
  const auto episodes = find_episodes(data, 5);
  EXPECT_EQ(build_expert(data, {episodes[0]}, AbsorbingRule::None).size(), 5);
  const Expert e = build_expert(data, episodes, AbsorbingRule::PwDice);
  ASSERT_EQ(e.state_dim, 3);
  ASSERT_EQ(e.size(), 5 + 3 + 2);
  EXPECT_EQ(e.episodes[1].length(), 5);
  EXPECT_EQ((std::vector<float>{e.states.end() - 6, e.states.end()}),
            (std::vector<float>{13, 1, 0, 0, 0, 1}));
  EXPECT_EQ(build_expert(data, episodes, AbsorbingRule::Smodice).size(), 9);
}

TEST(Mixture, FirstOfFullLengthIsTheExpert) {
  const Episodes expert = recording({-4, 3, 5, -5, 5});
  MixtureSpec spec;
  spec.max_episode_steps = 5;
  spec.offline_expert = 3;
  ExpertSplit split = split_expert(expert, spec);
  ASSERT_EQ(split.expert.size(), 1u);
  EXPECT_EQ(split.expert[0].begin, 7);
  ASSERT_EQ(split.offline.size(), 3u);
  EXPECT_EQ(split.offline[2].begin, 12);  // episodes 0, 1 and 3: E's own is left out
  spec.exclude_expert = false;
  split = split_expert(expert, spec);
  EXPECT_EQ(split.offline[2].begin, 7);
  spec.expert_episode = 1, spec.expert_episodes = 2, spec.offline_expert = -1, spec.exclude_expert = true;
  split = split_expert(expert, spec);
  EXPECT_EQ(split.expert.size(), 2u);
  EXPECT_EQ(split.offline.size(), 3u);
  spec.expert_episodes = -1, spec.expert_episode = -1, spec.offline_expert = 0;
  EXPECT_EQ(split_expert(expert, spec).expert.size(), 5u);
}

TEST(Mixture, RefusesWhatIsNotThere) {
  MixtureSpec spec;
  spec.max_episode_steps = 9;
  EXPECT_THROW(split_expert(recording({5, 5}), spec), Error);  // none of full length
  spec.max_episode_steps = 5, spec.expert_episode = 2;
  EXPECT_THROW(split_expert(recording({5, 5}), spec), Error);
  spec.expert_episode = 0, spec.offline_expert = 2;
  EXPECT_THROW(split_expert(recording({5, 5}), spec), Error);  // one left
  spec.offline_expert = 0;
  EXPECT_THROW(build_mixture(recording({5}), {}, spec), Error);  // nothing in I
}

TEST(Mixture, AnExpertMayShowStatesAlone) {
  Episodes expert = recording({5, 5});
  expert.action_dim = 0, expert.actions.clear();
  MixtureSpec spec;
  spec.max_episode_steps = 5, spec.offline_expert = -1;
  const Mixture mixture = build_mixture(expert, {recording({4})}, spec);
  EXPECT_EQ(mixture.expert.size(), 5);
  for (const uint8_t source : mixture.offline.source) EXPECT_EQ(source, 1);
  spec.offline_expert = 1;
  EXPECT_THROW(build_mixture(expert, {recording({4})}, spec), Error);
  EXPECT_THROW(build_mixture(recording({5, 5}), {expert}, spec), Error);  // I needs actions
}

TEST(Mixture, ActionsBeyondTheTanhAreRefusedAtOnce) {
  Episodes wide = recording({5});
  wide.actions[3] = -1.5f;
  MixtureSpec spec;
  spec.max_episode_steps = 5, spec.offline_expert = 0;
  try {
    build_mixture(recording({5}), {wide}, spec);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("is -1.5, expected -1 to 1"), std::string::npos) << error.what();
  }
}

TEST(Mixture, IsNormalisedOverIAndMapsNewStatesAlike) {
  MixtureSpec spec;
  spec.max_episode_steps = 5, spec.offline_expert = 1;
  spec.normalizer.eps = 0, spec.normalizer.unbiased = false;
  const Mixture m = build_mixture(recording({5, 4}), {recording({6, -6}, "a"), recording({3}, "b")}, spec);
  EXPECT_EQ(m.offline.size(), 4 + 12 + 3);
  EXPECT_EQ(std::count(m.offline.source.begin(), m.offline.source.end(), 0), 4);
  EXPECT_EQ(std::count(m.offline.source.begin(), m.offline.source.end(), 2), 3);
  double mean = 0, square = 0;
  for (int64_t i = 0; i < m.offline.size(); ++i) {
    const double x = static_cast<double>(m.offline.state(i)[0]);
    mean += x, square += x * x;
    EXPECT_EQ(m.offline.state(i)[1], 0);  // constant
  }
  EXPECT_NEAR(mean / 19, 0, 1e-6);
  EXPECT_NEAR(square / 19, 1, 1e-5);
  const float raw[] = {0, 1};  // the expert's first state
  float mapped[2];
  m.state_map.apply({raw, 1, 2}, {mapped, 1, 2});
  EXPECT_EQ(mapped[0], m.expert.states[0]);
  EXPECT_NEAR(total(m.expert.weight), 1, 1e-6);
}

TEST(Mixture, DistortionAndAbsorbingFlagReachEvaluationToo) {
  MixtureSpec spec;
  spec.max_episode_steps = 5, spec.offline_expert = -1;
  spec.distortion = 4, spec.distortion_seed = 3;
  spec.absorbing = AbsorbingRule::PwDice;
  const Mixture m = build_mixture(recording({5, -4}), {recording({6})}, spec);
  EXPECT_EQ(m.state_map.state_dim(), 3);
  EXPECT_EQ(m.state_map.observation_dim(), 2);
  const float raw[] = {2, 1};  // step 2 of E
  float mapped[3];
  m.state_map.apply({raw, 1, 2}, {mapped, 1, 3});
  for (int k = 0; k < 3; ++k) EXPECT_EQ(mapped[k], m.expert.states[2 * 3 + k]);
  const Distortion d = Distortion::random(2, 4, 3);
  EXPECT_EQ(d.matrix, m.state_map.distortion.matrix);
  EXPECT_NE(d.matrix, Distortion::random(2, 4, 4).matrix);
}

}  // namespace
}  // namespace pwdice
