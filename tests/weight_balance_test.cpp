// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../models/weight_balance.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../kernels/error.h"

namespace pwdice {
namespace {

// Two episodes of three steps; the first step of both has little weight.
const std::vector<int32_t> kSteps = {0, 1, 2, 0, 1, 2};

TEST(WeightBalance, NothingIsChangedUnlessAsked) {
  std::vector<float> w = {0.1f, 0.2f, 0.3f, 0.f, 1.f, 0.5f};
  const std::vector<float> before = w;
  balance({}, kSteps, w);
  EXPECT_EQ(w, before);
}

TEST(WeightBalance, EveryStepGetsTheSameMassAndKeepsItsRatios) {
  std::vector<float> w = {0.01f, 0.2f, 0.6f, 0.03f, 0.6f, 0.2f};
  balance({1, true}, kSteps, w);
  for (size_t t = 0; t < 3; ++t) EXPECT_NEAR(w[t] + w[t + 3], w[0] + w[3], 1e-6);
  EXPECT_NEAR(w[3] / w[0], 3, 1e-5);
  EXPECT_NEAR(w[1] / w[4], 1.0 / 3, 1e-5);
  EXPECT_EQ(*std::max_element(w.begin(), w.end()), 1.f);
}

TEST(WeightBalance, APowerSharpens) {
  std::vector<float> w = {0.1f, 0.2f, 0.5f, 0.2f, 0.2f, 1.f};
  balance({2, false}, kSteps, w);
  EXPECT_NEAR(w[0], 0.01, 1e-7);
  EXPECT_NEAR(w[2], 0.25, 1e-6);
  EXPECT_EQ(w[5], 1.f);
}

TEST(WeightBalance, AStepWithoutWeightStaysWithout) {
  std::vector<float> w = {0.f, 1.f, 1.f, 0.f, 1.f, 1.f};
  balance({2, true}, kSteps, w);
  EXPECT_EQ(w, (std::vector<float>{0.f, 1.f, 1.f, 0.f, 1.f, 1.f}));
  std::vector<float> nothing(6, 0.f);
  balance({2, true}, kSteps, nothing);
  EXPECT_EQ(nothing, std::vector<float>(6, 0.f));
}

TEST(WeightBalance, OtherNumbersOfWeightsAreAnError) {
  std::vector<float> w(5, 1.f);
  EXPECT_THROW(balance({2, true}, kSteps, w), Error);
}

}  // namespace
}  // namespace pwdice
