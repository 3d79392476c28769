// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../host/rng.h"

#include <set>
#include <string>

#include "../host/tensor.h"
#include "../kernels/sample.h"
#include "op_case.h"

namespace pwdice::test {
namespace {

class Rng : public testing::TestWithParam<Backend> {
 protected:
  Context ctx_{ContextOptions{.backend = GetParam(), .threads = 2}};
};
INSTANTIATE_TEST_SUITE_P(, Rng, testing::ValuesIn(test_backends()), backend_name);

TEST(RandomStream, IsAFunctionOfSeedAndName) {
  EXPECT_EQ(random_stream(1, "batches").stream, random_stream(2, "batches").stream);
  EXPECT_NE(random_stream(1, "batches").at(0, 0).v[0], random_stream(2, "batches").at(0, 0).v[0]);
  // Pinned: a run resumed with another build must draw the same.
  EXPECT_EQ(random_stream(1, "").stream, 0xf52a15e9a9b5e89bull);
  EXPECT_EQ(random_stream(1, "batches").stream, 0x2c6645ce0faa6c99ull);
}

TEST(RandomStream, NamesDoNotCollide) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 20000; ++i) seen.insert(random_stream(0, "stream " + std::to_string(i)).stream);
  EXPECT_EQ(seen.size(), 20000u);
}

TEST_P(Rng, StepCounterMovesTheDraws) {
  const RandomStream stream = random_stream(5, "batches");
  StepCounter counter(ctx_, 3);
  Array<float> draws(ctx_, 8);
  const auto draw = [&] {
    sample_real(ctx_, {stream, counter.view(), draws.view()});
    return download(ctx_, draws.view());
  };
  const auto third = draw();
  EXPECT_EQ(draw(), third);
  counter.advance(ctx_);
  EXPECT_EQ(counter.get(ctx_), 4u);
  const auto fourth = draw();
  EXPECT_NE(fourth, third);
  counter.set(ctx_, 3);  // resumed
  EXPECT_EQ(draw(), third);
}

}  // namespace
}  // namespace pwdice::test
