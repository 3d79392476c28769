// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// The C++ tasks against gymnasium, step by step, from the recording of make_parity.py (PWDICE_PARITY_FILE).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "../../datasets/hdf5_file.h"
#include "../../datasets/mujoco_env.h"
#include "../../kernels/error.h"

namespace pwdice {
namespace {

class MujocoParity : public ::testing::TestWithParam<const char*> {};

TEST_P(MujocoParity, ObservationRewardAndTerminationAgreeFor1000Steps) {
  const std::string name = GetParam();
  const Hdf5Reader file(PWDICE_PARITY_FILE);
  const auto get = [&](const char* key) { return file.read<double>(name + "/" + key); };
  const auto flags = [&](const char* key) { return file.read<uint8_t>(name + "/" + key); };
  const auto reset = flags("reset"), terminated = flags("terminated");
  const auto qpos = get("qpos"), qvel = get("qvel"), observation = get("observation"), reward = get("reward");
  const auto action = file.read<float>(name + "/action");
  const size_t steps = reset.size(), nq = qpos.size() / steps, nv = qvel.size() / steps, s = observation.size() / steps,
               a = action.size() / steps;
  ASSERT_EQ(steps, 1000u);

  const auto env = make_mujoco(name);
  ASSERT_EQ(env->info().observation_dim, static_cast<int64_t>(s));
  ASSERT_EQ(env->info().action_dim, static_cast<int64_t>(a));
  std::vector<float> seen(s);
  int ends = 0;
  for (size_t t = 0; t < steps; ++t) {
    if (reset[t]) env->set_state({qpos.data() + t * nq, nq}, {qvel.data() + t * nv, nv}, {seen.data(), static_cast<int64_t>(s)});
    const StepResult result = env->step({action.data() + t * a, static_cast<int64_t>(a)}, {seen.data(), static_cast<int64_t>(s)});
    ASSERT_NEAR(result.reward, reward[t], 1e-5 * (1 + std::abs(reward[t]))) << "step " << t;
    ASSERT_EQ(result.terminated, terminated[t] != 0) << "step " << t;
    for (size_t k = 0; k < s; ++k) {
      ASSERT_NEAR(seen[k], observation[t * s + k], 1e-5 * (1 + std::abs(observation[t * s + k]))) << "step " << t << ", value " << k;
    }
    ends += terminated[t];
  }
  if (name == "hopper" || name == "walker2d") {
    EXPECT_GT(ends, 3);  // the recording covers terminations
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, MujocoParity, ::testing::Values("hopper", "halfcheetah", "walker2d", "ant", "ant111"),
                         [](const auto& task) { return std::string(task.param); });

TEST(Mujoco, ResetsAreReproducibleAndDiffer) {
  const auto a = make_mujoco("hopper"), b = make_mujoco("hopper");
  std::vector<float> x(11), y(11), z(11);
  a->reset(3, {x.data(), 11});
  b->reset(3, {y.data(), 11});
  b->reset(4, {z.data(), 11});
  EXPECT_EQ(x, y);
  EXPECT_NE(x, z);
  for (float v : x) EXPECT_TRUE(std::abs(v) < 0.02f || std::abs(v - 1.25f) < 0.02f) << v;
}

TEST(Mujoco, EvaluationDoesNotDependOnTheThreadCount) {
  const auto act = [](Mat<const float> o, Mat<float> out) {
    for (int64_t i = 0; i < out.rows; ++i) {
      for (int64_t k = 0; k < out.cols; ++k) out(i, k) = std::tanh(o(i, k));
    }
  };
  const EnvironmentFactory make = [] { return make_mujoco("walker2d"); };
  const Evaluation one = evaluate(make, act, {.episodes = 6, .seed = 1, .threads = 1});
  const Evaluation two = evaluate(make, act, {.episodes = 6, .seed = 1, .threads = 2});
  EXPECT_EQ(one.returns, two.returns);
  EXPECT_EQ(one.lengths, two.lengths);
}

TEST(Mujoco, BadInputIsOneSentence) {
  const auto message = [](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message([] { make_mujoco("hoper"); }).find("environment hoper"), std::string::npos);
  setenv("PWDICE_MUJOCO_MODELS", "/no/such/place", 1);
  EXPECT_NE(message([] { make_mujoco("hopper"); }).find("no model file /no/such/place/hopper.xml"), std::string::npos);
  unsetenv("PWDICE_MUJOCO_MODELS");
  const auto env = make_mujoco("hopper");
  std::vector<float> o(11), wrong(2), action(3, std::nanf(""));
  env->reset(0, {o.data(), 11});
  EXPECT_NE(message([&] { env->step({wrong.data(), 2}, {o.data(), 11}); }).find("action of 2 values, expected 3"), std::string::npos);
  EXPECT_NE(message([&] { env->step({action.data(), 3}, {o.data(), 11}); }), "no error");
  const std::vector<double> qpos(6, 0), qvel(6, 1e9);  // MuJoCo would start over in silence
  std::fill(action.begin(), action.end(), 0.f);
  env->set_state(qpos, qvel, {o.data(), 11});
  EXPECT_NE(message([&] { env->step({action.data(), 3}, {o.data(), 11}); }).find("became unstable"), std::string::npos);
}

}  // namespace
}  // namespace pwdice
