// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/lse.h"

#include <gtest/gtest.h>

#include "op_case.h"
#include "reference.h"

namespace pwdice {
namespace {

Lse one(float x) { return {x, 1.f}; }

TEST(Lse, DefaultIsTheIdentity) {
  const Lse a{3.f, 2.5f}, left = Lse{} + a, right = a + Lse{};
  EXPECT_EQ(left.m, a.m);
  EXPECT_EQ(left.z, a.z);
  EXPECT_EQ(right.m, a.m);
  EXPECT_EQ(right.z, a.z);
}

TEST(Lse, TwoEmptyPartsAreEmpty) {
  const Lse none = Lse{} + Lse{};
  EXPECT_EQ(none.m, -INFINITY);
  EXPECT_EQ(none.z, 0.f);
  EXPECT_EQ(value(none), -INFINITY);
}

TEST(Lse, MergedPartsMatchTheReference) {
  for (test::Data data : test::kAllData) {
    const auto x = test::make_data(data, 1000);
    Lse forward, backward;
    for (float v : x) forward = forward + one(v);
    for (size_t i = x.size(); i-- > 0;) backward = backward + one(x[i]);
    const double want = reference::logsumexp(test::to<double>(x));
    test::expect_within(value(forward), want, 1e-6, 1e-6);
    test::expect_within(value(backward), want, 1e-6, 1e-6);
  }
}

TEST(Lse, NanIsNeverLost) {
  EXPECT_TRUE(std::isnan(value(one(NAN) + one(1.f))));
  EXPECT_TRUE(std::isnan(value(one(1.f) + one(NAN))));
  EXPECT_TRUE(std::isnan(value(Lse{} + one(NAN))));
  EXPECT_TRUE(std::isnan(value((one(NAN) + one(1.f)) + one(2.f))));
}

TEST(Lse, LargeValuesDoNotOverflow) {
  EXPECT_FLOAT_EQ(value(one(1e4f) + one(1e4f)), 1e4f + std::log(2.f));
  EXPECT_EQ(value(one(1e30f) + one(-1e30f)), 1e30f);
}

}  // namespace
}  // namespace pwdice
