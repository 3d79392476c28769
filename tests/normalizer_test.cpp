// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <gtest/gtest.h>

#include <cmath>

#include "../datasets/state_map.h"
#include "../kernels/error.h"

namespace pwdice {
namespace {

// Columns: 0 1 2 3, a constant, a large offset with a tiny spread. A fifth row belongs to no transition.
Transitions four_rows() {
  Transitions t;
  t.state_dim = 3, t.action_dim = 1;
  for (int i = 0; i < 5; ++i) {
    const float x = i == 4 ? 1e6f : static_cast<float>(i);
    t.states.insert(t.states.end(), {x, 7.25f, 10000.f + static_cast<float>(i % 2) * 0.0078125f});
  }
  t.next = {1, 2, 3, 4};
  t.actions.assign(4, 0.f), t.done.assign(4, 0), t.step = {0, 1, 2, 3}, t.source.assign(4, 0);
  return t;
}

TEST(Normalizer, MeanAndDeviationOverTheStatesThatTransitionsStartFrom) {
  const Normalizer unbiased = Normalizer::fit(four_rows(), {true, 1e-4, true});
  EXPECT_FLOAT_EQ(unbiased.mean[0], 1.5f);
  EXPECT_FLOAT_EQ(unbiased.scale[0], static_cast<float>(std::sqrt(5.0 / 3) + 1e-4));
  const Normalizer biased = Normalizer::fit(four_rows(), {true, 0, false});
  EXPECT_FLOAT_EQ(biased.scale[0], static_cast<float>(std::sqrt(5.0 / 4)));
  EXPECT_NEAR(biased.scale[2], 0.00390625, 1e-8);  // survives the offset of 10000
}

TEST(Normalizer, AConstantDimensionStaysHarmless) {
  const Normalizer n = Normalizer::fit(four_rows(), {true, 1e-4, true});
  EXPECT_EQ(n.mean[1], 7.25f);
  EXPECT_EQ(n.scale[1], 1.f);
  float row[] = {1.5f, 8.25f, 10000.f};
  n.apply({row, 1, 3});
  EXPECT_EQ(row[0], 0.f);
  EXPECT_EQ(row[1], 1.f);
}

TEST(Normalizer, DisabledAndSingleRow) {
  const Normalizer off = Normalizer::fit(four_rows(), {false, 1e-4, true});
  EXPECT_EQ(off.mean, (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(off.scale, (std::vector<float>{1, 1, 1}));
  Transitions one = four_rows();
  one.next.resize(1);
  const Normalizer single = Normalizer::fit(one, {true, 1e-4, true});
  EXPECT_EQ(single.scale, (std::vector<float>{1, 1, 1}));
  one.next.clear();
  EXPECT_THROW(Normalizer::fit(one, {true, 1e-4, true}), Error);
}

TEST(Distortion, IsAMatrixProductWithTheRightSpread) {
  const int64_t d = 40;
  const Distortion distortion = Distortion::random(d, 4, 11);
  double square = 0, trace = 0;
  for (int64_t i = 0; i < d; ++i) {
    trace += static_cast<double>(distortion.matrix[i * d + i]) / static_cast<double>(d);
    for (int64_t j = 0; j < d; ++j) square += std::pow(static_cast<double>(distortion.matrix[i * d + j]), 2);
  }
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(d * d)), 4, 0.3);
  EXPECT_NEAR(trace, 0.1, 2.5);
  std::vector<float> row(d + 1, 0.f);
  row[3] = 2, row[d] = 9;  // a unit vector picks a column; what follows is left alone
  distortion.apply({row.data(), 1, d + 1});
  for (int64_t i = 0; i < d; ++i) EXPECT_FLOAT_EQ(row[i], 2 * distortion.matrix[i * d + 3]);
  EXPECT_EQ(row[d], 9.f);
}

TEST(StateMap, RefusesOtherWidths) {
  StateMap map;
  map.normalizer = Normalizer::identity(3);
  float in[4] = {}, out[4] = {};
  EXPECT_THROW(map.apply({in, 1, 4}, {out, 1, 4}), Error);
  map.absorbing = true;
  EXPECT_NO_THROW(map.apply({in, 1, 2}, {out, 1, 3}));
}

}  // namespace
}  // namespace pwdice
