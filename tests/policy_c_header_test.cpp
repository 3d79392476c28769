// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The exported header as a robot uses it: compiled as C99 without a warning, it acts as PolicyRuntime does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "../models/policy_runtime.h"

namespace pwdice {
namespace {
namespace fs = std::filesystem;

PolicyData random_policy(PolicyActivation activation) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.f, 0.3f);
  const auto values = [&](int count) {
    std::vector<float> out(static_cast<size_t>(count));
    for (float& v : out) v = normal(random);
    return out;
  };
  PolicyData data;
  data.activation = activation;
  data.layers = {{17, 5, values(85), values(17)}, {9, 17, values(153), values(9)}, {2, 9, values(18), values(2)}};
  data.obs_mean = values(5), data.obs_std = {1, 2, 0.5f, 1, 3};
  data.action_scale = {1, 2}, data.action_bias = {0, 0.25f};
  data.env_id = "Robot-v4 */ #error \n";
  return data;
}

constexpr const char* kMain = R"(#include <stdio.h>
#include "robot.h"
int main(void) {
  const float good[ROBOT_OBSERVATION_SIZE] = {0.5f, -1.0f, 2.0f, 0.0f, 4.0f};
  const float bad[ROBOT_OBSERVATION_SIZE] = {0.5f, -1.0f, -INFINITY, 0.0f, 4.0f};
  float action[ROBOT_ACTION_SIZE] = {7.0f, 7.0f};
  if (robot_act(bad, action) != -1 || action[0] != 7.0f || action[1] != 7.0f) return 1;
  if (robot_act(good, action) != 0) return 2;
  printf("%.9g %.9g\n", (double)action[0], (double)action[1]);
  return 0;
})";

class PolicyCHeader : public testing::TestWithParam<PolicyActivation> {};

TEST_P(PolicyCHeader, CompilesAndActsLikeTheRuntime) {
  const fs::path directory = fs::temp_directory_path() / ("pwdice-header-" + std::to_string(getpid()));
  fs::create_directories(directory);
  const std::string base = directory.string();
  const PolicyData data = random_policy(GetParam());
  std::ofstream(base + "/robot.h") << policy_c_header(data, "robot");
  std::ofstream(base + "/main.c") << kMain;
  const std::string compile = std::string(PWDICE_COMPILER) + " -x c -std=c99 -Wall -Wextra -Wconversion -Werror -o " + base +
                              "/act " + base + "/main.c -lm";
  ASSERT_EQ(std::system(compile.c_str()), 0) << compile;
  ASSERT_EQ(std::system((base + "/act > " + base + "/out").c_str()), 0);
  std::ifstream in(base + "/out");
  float got[2], want[2];
  ASSERT_TRUE(in >> got[0] >> got[1]);
  const float observation[5] = {0.5f, -1, 2, 0, 4};
  ASSERT_EQ(PolicyRuntime(data).act(observation, 5, want, 2), ActStatus::Ok);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
  fs::remove_all(directory);
}

INSTANTIATE_TEST_SUITE_P(Activations, PolicyCHeader, testing::Values(PolicyActivation::Relu, PolicyActivation::Tanh));

TEST(PolicyCHeader, ANameThatCWouldNotTakeIsAnError) {
  for (const char* name : {"", "1robot", "my robot", "a;b"}) {
    EXPECT_THROW(policy_c_header(random_policy(PolicyActivation::Relu), name), std::invalid_argument) << name;
  }
}

}  // namespace
}  // namespace pwdice
