// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../models/cloning_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../kernels/error.h"

namespace pwdice {
namespace {

// Two episodes of three steps.
const std::vector<int32_t> kSteps = {0, 1, 2, 0, 1, 2};

TEST(CloningWeights, NothingIsChangedUnlessAsked) {
  std::vector<float> w = {0.1f, 0.2f, 0.3f, 0.f, 1.f, 0.5f};
  const std::vector<float> before = w;
  shape_weights({}, kSteps, w);
  EXPECT_EQ(w, before);
}

TEST(CloningWeights, EveryStepGetsTheSameMassAndKeepsItsRatios) {
  std::vector<float> w = {0.01f, 0.2f, 0.6f, 0.03f, 0.6f, 0.2f};
  shape_weights({.balanced = true, .cap = 0}, kSteps, w);
  for (size_t t = 0; t < 3; ++t) EXPECT_NEAR(w[t] + w[t + 3], w[0] + w[3], 1e-6);
  EXPECT_NEAR(w[3] / w[0], 3, 1e-5);
  EXPECT_NEAR(w[1] / w[4], 1.0 / 3, 1e-5);
  EXPECT_EQ(*std::max_element(w.begin(), w.end()), 1.f);
}

TEST(CloningWeights, APowerSharpens) {
  std::vector<float> w = {0.1f, 0.2f, 0.5f, 0.2f, 0.2f, 1.f};
  shape_weights({.power = 2}, kSteps, w);
  EXPECT_NEAR(w[0], 0.01, 1e-7);
  EXPECT_NEAR(w[2], 0.25, 1e-6);
  EXPECT_EQ(w[5], 1.f);
}

// The geometric mean of what follows in the same episode, never of the next one.
TEST(CloningWeights, LookingAheadStaysInTheEpisode) {
  std::vector<float> w = {0.04f, 0.16f, 0.64f, 0.01f, 1.f, 1.f};
  shape_weights({.lookahead = 2}, kSteps, w);
  const std::vector<double> want = {std::sqrt(0.04 * 0.16), std::sqrt(0.16 * 0.64), 0.64, std::sqrt(0.01), 1, 1};
  for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(w[i], want[i], 1e-6) << i;
  std::vector<float> far = {0.5f, 0.5f, 0.5f, 1.f, 1.f, 1.f};
  shape_weights({.lookahead = 1000}, kSteps, far);
  for (size_t i = 0; i < far.size(); ++i) EXPECT_NEAR(far[i], i < 3 ? 0.5 : 1, 1e-6) << i;
}

// One step, masses 8, 1, 0.5, 0.5: nine tenths lie at or above 1, so that 8 counts as 1.
TEST(CloningWeights, AFewTransitionsDoNotStandForAll) {
  std::vector<float> w = {0.8f, 0.1f, 0.05f, 0.05f};
  shape_weights({.balanced = true, .cap = 0.9}, {0, 0, 0, 0}, w);
  EXPECT_NEAR(w[0], 1, 1e-6);
  EXPECT_NEAR(w[1], 1, 1e-6);
  EXPECT_NEAR(w[2], 0.5, 1e-6);
  EXPECT_NEAR(w[3], 0.5, 1e-6);
}

TEST(CloningWeights, AStepWithoutWeightStaysWithout) {
  std::vector<float> w = {0.f, 1.f, 1.f, 0.f, 1.f, 1.f};
  shape_weights({.power = 3, .balanced = true}, kSteps, w);
  EXPECT_EQ(w, (std::vector<float>{0.f, 1.f, 1.f, 0.f, 1.f, 1.f}));
  std::vector<float> nothing(6, 0.f);
  shape_weights({.power = 2, .lookahead = 3, .balanced = true}, kSteps, nothing);
  EXPECT_EQ(nothing, std::vector<float>(6, 0.f));
  std::vector<float> later = {0.f, 0.f, 0.5f, 0.f, 0.f, 0.f};  // the zeros before it count as small, not as nothing
  shape_weights({.lookahead = 3}, kSteps, later);
  EXPECT_GT(later[0], 0.f);
  EXPECT_EQ(later[2], 1.f);
  EXPECT_EQ(later[3], 0.f);
}

TEST(CloningWeights, OtherNumbersOfWeightsAreAnError) {
  std::vector<float> w(5, 1.f);
  EXPECT_THROW(shape_weights({.power = 2}, kSteps, w), Error);
}

}  // namespace
}  // namespace pwdice
