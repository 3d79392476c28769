// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// The trainer from the inside: what its passes over the data compute, against plain double code.
#include "../models/run/task.h"
#include "../models/pwdice.h"

#include <gtest/gtest.h>

#include "../models/policy_runtime.h"
#include "small_run.h"

namespace pwdice::test {
namespace {

TEST(Trainer, GoesThroughThePhasesInOrder) {
  Context ctx;
  Trainer trainer(ctx, small_config(), small_mixture());
  std::vector<Phase> seen;
  int64_t steps = 0;
  for (; trainer.phase() != Phase::Done; ++steps) {
    if (seen.empty() || seen.back() != trainer.phase()) seen.push_back(trainer.phase());
    trainer.advance(ctx);
  }
  EXPECT_EQ(seen, (std::vector{Phase::Contrastive, Phase::Discriminator, Phase::Dual}));
  EXPECT_EQ(steps, 20 + 20 + 30);
  EXPECT_EQ(trainer.policy_steps(), 2 * (30 - 5));
  Trainer bc(ctx, small_config({{"method", "bc"}}), small_mixture());
  EXPECT_EQ(bc.phase(), Phase::Dual);
  Trainer reward_only(ctx, small_config({{"cost.distance", "none"}}), small_mixture());
  EXPECT_EQ(reward_only.phase(), Phase::Discriminator);
}

// w_i = exp(y_i - max y), y_i = (l0(s) - gamma (1 - done) l0(s') - l1(s)) / e2, at the end of training.
TEST(Trainer, WeightsFollowTheirFormula) {
  const Config config = small_config({{"policy.weights_every", "1"}});
  Trained t(config);
  const Mixture mixture = small_mixture();
  const Network net = reference_network(t, "potentials", {4, 256, 256, 2});
  std::vector<double> y;
  for (int64_t i = 0; i < mixture.offline.size(); ++i) {
    const auto s = net(t.trainer.data().states().row(i)), next = net(t.trainer.data().states().row(t.trainer.data().next()[i]));
    y.push_back((s[0] - t.trainer.data().discount()[i] * next[0] - s[1]) / config.eps2);
  }
  const double top = *std::max_element(y.begin(), y.end());
  const std::vector<float> w = t.trainer.weights(t.ctx);
  ASSERT_EQ(w.size(), y.size());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(w[i], std::exp(y[i] - top), 1e-4) << i;
}

// x in units of the expert's states, as the actor sees it.
void to_expert_units(const DataTables& data, std::vector<float>& x) {
  const Mat<const float> expert = data.expert_states();
  const auto rows = static_cast<double>(expert.rows);
  for (int64_t k = 0; k < expert.cols; ++k) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < expert.rows; ++i) mean += expert(i, k) / rows;
    for (int64_t i = 0; i < expert.rows; ++i) square += (expert(i, k) - mean) * (expert(i, k) - mean) / (rows - 1);
    const double scale = square > 0 ? std::sqrt(square) + 1e-4 : 1;
    x[static_cast<size_t>(k)] = static_cast<float>((x[static_cast<size_t>(k)] - mean) / scale);
  }
}

// Distortion, absorbing flag, normaliser and the expert's units are folded into the exported policy.
TEST(Trainer, ExportedPolicySeesRawObservations) {
  for (const auto& [folded, units] : {std::pair{false, "data"}, {true, "data"}, {false, "expert"}, {true, "expert"}}) {
    MixtureSpec spec;
    if (folded) spec.distortion = 1, spec.distortion_seed = 3, spec.absorbing = AbsorbingRule::PwDice;
    Trained t(small_config({{"policy.average", "0.0"}, {"policy.units", units}}), spec);
    const PolicyData policy = t.trainer.policy(t.ctx);
    PolicyRuntime runtime(policy);
    ASSERT_EQ(runtime.observation_size(), 4);
    const Network net = reference_network(t, "policy", {folded ? 5 : 4, 256, 256, 4});
    for (int trial = 0; trial < 10; ++trial) {
      const float k = static_cast<float>(trial);
      const float observation[4] = {1 + 0.3f * k, 2 - 0.1f * k, 0.1f * k, -0.2f};
      float action[2];
      std::vector<float> state(folded ? 5 : 4);
      t.trainer.data().state_map().apply({observation, 1, 4}, {state.data(), 1, static_cast<int64_t>(state.size())});
      ASSERT_EQ(runtime.act(observation, 4, action, 2), ActStatus::Ok);
      if (std::string(units) == "expert") to_expert_units(t.trainer.data(), state);
      const auto head = net(state.data());
      for (int a = 0; a < 2; ++a) EXPECT_NEAR(action[a], std::tanh(head[static_cast<size_t>(a)]), 1e-3) << units << ", folded " << folded;
    }
  }
}

// What happens after an episode's end is no example of anything.
TEST(Trainer, WithAbsorbingStatesTheEndsAreNotCloned) {
  MixtureSpec spec;
  spec.absorbing = AbsorbingRule::PwDice;
  for (const char* method : {"pwdice", "bc"}) {
    Context ctx;
    Mixture mixture = small_mixture(spec);
    for (size_t i = 0; i < mixture.offline.done.size(); i += 7) mixture.offline.done[i] = 1;  // the maze has no ends
    Trainer trainer(ctx, small_config({{"method", method}}), std::move(mixture));
    while (trainer.phase() != Phase::Done) trainer.advance(ctx);
    const std::vector<float> w = trainer.weights(ctx);
    for (size_t i = 0; i < w.size(); ++i) EXPECT_EQ(w[i] == 0, i % 7 == 0) << method << " " << i;
  }
}

// Where nobody but the ends has a weight nothing is left to draw from.
TEST(Trainer, WeightsOfNobodyAreAnError) {
  Context ctx;
  MixtureSpec spec;
  spec.absorbing = AbsorbingRule::PwDice;
  Mixture mixture = small_mixture(spec);
  std::fill(mixture.offline.done.begin(), mixture.offline.done.end(), 1);
  Trainer trainer(ctx, small_config({{"cost.distance", "none"}}), std::move(mixture));
  expect_error(ErrorCode::NotFinite, "dual phase, step 6: the largest weight of the policy is not", [&] {
    while (trainer.phase() != Phase::Done) trainer.advance(ctx);
  });
}

TEST(Trainer, EndsAloneTeachNoMetric) {
  Context ctx;
  Mixture mixture = small_mixture();
  std::fill(mixture.offline.done.begin(), mixture.offline.done.end(), 1);
  expect_error(ErrorCode::InvalidArgument, "encoder: every transition is terminal",
               [&] { Trainer(ctx, small_config(), std::move(mixture)); });
}

// The policy does not change the potentials, so runs that differ in the shaping alone have the same raw weights.
TEST(Trainer, WeightsAreShapedAsTheConfigSays) {
  Trained plain(small_config()), ahead(small_config({{"policy.lookahead", "5"}, {"policy.power", "2"}})),
      balanced(small_config({{"policy.lookahead", "5"}, {"policy.balance", "steps"}, {"policy.cap", "0"}}));
  const std::vector<int32_t>& step = plain.trainer.data().step();
  const std::vector<float> raw = plain.trainer.weights(plain.ctx), got = ahead.trainer.weights(ahead.ctx);
  std::vector<double> want(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    double product = 1, count = 0;
    for (size_t j = i; j < raw.size() && j < i + 5 && (j == i || step[j] > step[j - 1]); ++j) {
      product *= raw[j], ++count;
    }
    want[i] = std::pow(product, 2 / count);
  }
  const double top = *std::max_element(want.begin(), want.end());
  for (size_t i = 0; i < raw.size(); ++i) ASSERT_NEAR(got[i], want[i] / top, 1e-4) << i;
  std::map<int32_t, double> mass;
  const std::vector<float> w = balanced.trainer.weights(balanced.ctx);
  for (size_t i = 0; i < w.size(); ++i) mass[step[i]] += static_cast<double>(w[i]);
  ASSERT_GT(mass.size(), 10u);
  for (const auto& [t, sum] : mass) EXPECT_NEAR(sum, mass[0], 1e-4 * mass[0]) << "step " << t;
}

TEST(Trainer, ARunThatWouldNotTrainItsPolicyIsRefused) {
  Context ctx;
  const auto make = [&](const std::vector<std::pair<const char*, const char*>>& settings) {
    Trainer(ctx, small_config(settings), small_mixture());
  };
  EXPECT_THROW(make({{"dual.steps", "5"}}), Error);                                      // policy.start = 5
  EXPECT_THROW(make({{"policy.steps_per_dual", "0.01"}}), Error);
  EXPECT_THROW(make({{"policy.schedule", "epoch"}, {"dual.steps", "20"}}), Error);       // an epoch has 24 steps
  EXPECT_NO_THROW(make({{"policy.schedule", "epoch"}, {"policy.start", "29300"}, {"method", "bc"}}));
}

TEST(Trainer, SavedAndRestoredGoesOnWithTheSameBits) {
  for (const int64_t stop : {5, 20, 33, 40, 52}) {
    const Config config = small_config();
    Trained whole(config);
    Context ctx(ContextOptions{.threads = 2});
    Trainer first(ctx, config, small_mixture());
    for (int64_t i = 0; i < stop; ++i) first.advance(ctx);
    Checkpoint checkpoint;
    first.save(ctx, checkpoint);
    Trainer second(ctx, config, small_mixture());
    second.restore(ctx, checkpoint);
    EXPECT_EQ(second.phase(), first.phase());
    while (second.phase() != Phase::Done) second.advance(ctx);
    Checkpoint end;
    second.save(ctx, end);
    for (const auto& [name, bytes] : whole.state()) {
      EXPECT_EQ(end.get_text(name), std::string(bytes.begin(), bytes.end())) << name << " after " << stop;
    }
  }
}

TEST(Trainer, CheckpointOfOtherDataIsRefused) {
  Context ctx;
  Trainer a(ctx, small_config(), small_mixture());
  Checkpoint checkpoint;
  a.save(ctx, checkpoint);
  checkpoint.put("transitions", int64_t{7});
  EXPECT_THROW(a.restore(ctx, checkpoint), Error);
}

// The config's words reach the data: p0 of whom it names, and states that are distorted when it says so.
TEST(Task, MixtureFollowsTheConfig) {
  Config config = make_profile("maze");
  config.data.maze_transitions = 500;
  const Mixture plain = make_mixture(config);
  EXPECT_EQ(plain.initial, InitialStates::Expert);
  EXPECT_TRUE(plain.state_map.distortion.matrix.empty());
  config.data.initial = "both", config.data.distorted = true;
  const Mixture changed = make_mixture(config);
  EXPECT_EQ(changed.initial, InitialStates::Both);
  EXPECT_EQ(changed.state_map.distortion.matrix.size(), 16u);
}

}  // namespace
}  // namespace pwdice::test
