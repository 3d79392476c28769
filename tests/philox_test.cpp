// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace pwdice {
namespace {

// The known-answer vectors published with Random123 (philox4x32, 10 rounds).
TEST(Philox, KnownAnswers) {
  const Philox zero = philox4x32(0, 0, 0);
  EXPECT_EQ(zero.v[0], 0x6627e8d5u);
  EXPECT_EQ(zero.v[1], 0xe169c58du);
  EXPECT_EQ(zero.v[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.v[3], 0x9b00dbd8u);

  const Philox ones = philox4x32(~0ull, ~0ull, ~0ull);
  EXPECT_EQ(ones.v[0], 0x408f276du);
  EXPECT_EQ(ones.v[1], 0x41c83b0eu);
  EXPECT_EQ(ones.v[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.v[3], 0x6d5451fdu);

  // counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0, lowest word first
  const Philox pi = philox4x32(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull);
  EXPECT_EQ(pi.v[0], 0xd16cfe09u);
  EXPECT_EQ(pi.v[1], 0x94fdccebu);
  EXPECT_EQ(pi.v[2], 0x5001e420u);
  EXPECT_EQ(pi.v[3], 0x24126ea1u);
}

TEST(Philox, UniformStaysBelowOneAndReachesZero) {
  EXPECT_EQ(uniform01(0), 0.f);
  EXPECT_LT(uniform01(~0u), 1.f);
  EXPECT_GT(uniform01(~0u), 0.9999999f);
}

TEST(Philox, UniformBelowCoversTheWholeRange) {
  for (uint64_t n : {uint64_t{1}, uint64_t{3}, uint64_t{1000003}, ~uint64_t{0}}) {
    EXPECT_EQ(uniform_below(0, 0, n), 0u);
    EXPECT_EQ(uniform_below(~0u, ~0u, n), n - 1);
  }
}

TEST(Permutation, IsOneToOneForEverySize) {
  for (uint64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000, 4097}) {
    for (uint64_t key : {uint64_t{0}, uint64_t{1}, uint64_t{0x9e3779b97f4a7c15}}) {
      const Permutation order(key, n);
      std::vector<bool> seen(n);
      for (uint64_t i = 0; i < n; ++i) {
        const uint64_t at = order(i);
        ASSERT_LT(at, n);
        ASSERT_FALSE(seen[at]) << "value " << at << " twice, n = " << n;
        seen[at] = true;
      }
    }
  }
}

// Over many keys, where an item lands, and where its neighbour lands relative to it, is uniform.
TEST(Permutation, LooksRandom) {
  constexpr uint64_t kN = 20, kKeys = 20000;
  for (uint64_t item : {uint64_t{0}, uint64_t{7}, kN - 1}) {
    std::vector<double> place(kN), gap(kN);
    for (uint64_t key = 0; key < kKeys; ++key) {
      const Permutation order(philox4x32(1, 0, key).v[0] + (key << 32), kN);
      place[order(item)] += 1;
      gap[(order((item + 1) % kN) + kN - order(item)) % kN] += 1;
    }
    double place_chi2 = 0, gap_chi2 = 0;
    for (uint64_t k = 0; k < kN; ++k) {
      place_chi2 += std::pow(place[k] - kKeys / kN, 2) / (kKeys / kN);
      if (k > 0) gap_chi2 += std::pow(gap[k] - kKeys / (kN - 1.0), 2) / (kKeys / (kN - 1.0));
    }
    EXPECT_LT(place_chi2, 44) << item;  // 99.9 % of chi2 with 19 degrees of freedom
    EXPECT_LT(gap_chi2, 43) << item;
    EXPECT_EQ(gap[0], 0);
  }
}

TEST(RandomStream, DependsOnSeedStreamStepAndIndex) {
  const RandomStream a{1, 2};
  const uint32_t base = a.at(3, 4).v[0];
  EXPECT_EQ(base, a.at(3, 4).v[0]);
  EXPECT_NE(base, (RandomStream{9, 2}.at(3, 4).v[0]));
  EXPECT_NE(base, (RandomStream{1, 9}.at(3, 4).v[0]));
  EXPECT_NE(base, a.at(9, 4).v[0]);
  EXPECT_NE(base, a.at(3, 9).v[0]);
}

}  // namespace
}  // namespace pwdice
