// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../models/policy_runtime.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "allocation_count.h"

namespace pwdice {
namespace {

PolicyData random_policy(std::vector<int> sizes, PolicyActivation activation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.f, 0.3f);
  PolicyData data;
  data.activation = activation;
  for (size_t l = 0; l + 1 < sizes.size(); ++l) {
    PolicyData::Layer layer{sizes[l + 1], sizes[l], {}, {}};
    for (int i = 0; i < layer.rows * layer.cols; ++i) layer.weight.push_back(normal(random));
    for (int i = 0; i < layer.rows; ++i) layer.bias.push_back(normal(random));
    data.layers.push_back(layer);
  }
  for (int i = 0; i < sizes.front(); ++i) data.obs_mean.push_back(normal(random)), data.obs_std.push_back(0.5f + std::abs(normal(random)));
  for (int i = 0; i < sizes.back(); ++i) data.action_scale.push_back(1.f + 0.1f * static_cast<float>(i)), data.action_bias.push_back(0.01f);
  return data;
}

std::vector<double> reference(const PolicyData& data, const std::vector<float>& observation) {
  std::vector<double> x;
  for (size_t k = 0; k < observation.size(); ++k) x.push_back((static_cast<double>(observation[k]) - data.obs_mean[k]) / data.obs_std[k]);
  for (size_t l = 0; l < data.layers.size(); ++l) {
    const auto& layer = data.layers[l];
    std::vector<double> y(layer.bias.begin(), layer.bias.end());
    for (int o = 0; o < layer.rows; ++o) {
      for (int i = 0; i < layer.cols; ++i) y[o] += static_cast<double>(layer.weight[o * layer.cols + i]) * x[i];
      if (l + 1 < data.layers.size()) y[o] = data.activation == PolicyActivation::Relu ? std::max(0.0, y[o]) : std::tanh(y[o]);
    }
    x = y;
  }
  for (size_t k = 0; k < x.size(); ++k) x[k] = data.action_scale[k] * std::tanh(x[k]) + data.action_bias[k];
  return x;
}

TEST(PolicyRuntime, AgreesWithADoubleReference) {
  for (const auto activation : {PolicyActivation::Relu, PolicyActivation::Tanh}) {
    for (const std::vector<int>& sizes : {std::vector<int>{11, 256, 256, 3}, {1, 1}, {5, 7, 2}, {17, 16, 33, 6}}) {
      const PolicyData data = random_policy(sizes, activation, 1);
      PolicyRuntime policy(data);
      std::mt19937 random(2);
      std::normal_distribution<float> normal;
      for (int trial = 0; trial < 20; ++trial) {
        std::vector<float> observation(static_cast<size_t>(sizes.front())), action(static_cast<size_t>(sizes.back()));
        for (float& v : observation) v = normal(random);
        ASSERT_EQ(policy.act(observation.data(), observation.size(), action.data(), action.size()), ActStatus::Ok);
        const auto expected = reference(data, observation);
        for (size_t k = 0; k < action.size(); ++k) EXPECT_NEAR(action[k], expected[k], 2e-5);
      }
    }
  }
}

TEST(PolicyRuntime, ActNeverAllocatesAndNeverLocks) {
  PolicyRuntime policy(random_policy({11, 256, 256, 3}, PolicyActivation::Relu, 3));
  const float observation[11] = {};
  float action[3];
  policy.act(observation, 11, action, 3);
  const auto before = test::allocation_count(), locks_before = test::lock_count();
  for (int i = 0; i < 100; ++i) policy.act(observation, 11, action, 3);
  EXPECT_EQ(test::allocation_count(), before);
  EXPECT_EQ(test::lock_count(), locks_before);
  static_assert(noexcept(policy.act(observation, 11, action, 3)));
}

TEST(PolicyRuntime, BadInputIsAStatusAndWritesNothing) {
  PolicyRuntime policy(random_policy({3, 4, 2}, PolicyActivation::Relu, 4));
  float observation[3] = {0, std::numeric_limits<float>::quiet_NaN(), 0}, action[2] = {7, 8};
  EXPECT_EQ(policy.act(observation, 3, action, 2), ActStatus::NotFinite);
  EXPECT_EQ(policy.act(observation, 2, action, 2), ActStatus::WrongSize);
  EXPECT_EQ(policy.act(observation, 3, action, 1), ActStatus::WrongSize);
  EXPECT_EQ(action[0], 7);
  observation[1] = 0;
  EXPECT_EQ(policy.act(observation, 3, action, 2), ActStatus::Ok);
  EXPECT_NE(action[0], 7);
}

TEST(PolicyRuntime, DefectsAreOneSentence) {
  const PolicyData good = random_policy({3, 4, 2}, PolicyActivation::Relu, 5);
  EXPECT_EQ(find_defect(good), "");
  PolicyData bad = good;
  bad.layers[1].cols = 5;
  EXPECT_EQ(find_defect(bad), "layer 1 is 2 x 5, its input has 4");
  bad = good, bad.obs_std[0] = 0;
  EXPECT_NE(find_defect(bad).find("positive"), std::string::npos);
  bad = good, bad.layers[0].weight[1] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(find_defect(bad), "layer 0 has values that are not finite");
  bad = good, bad.layers.clear();
  EXPECT_EQ(find_defect(bad), "the policy has no layers");
  bad = good, bad.action_bias.pop_back();
  EXPECT_EQ(find_defect(bad), "action_scale or action_bias is not of length 2");
  EXPECT_THROW(PolicyRuntime{bad}, std::invalid_argument);
}

}  // namespace
}  // namespace pwdice
