// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Gradients of networks that end with two ReLU layers and a head: on the CPU sums of selected rows
// (kernels/cpu/relu_head-inl.h), on CUDA products.
#include <algorithm>
#include <limits>

#include "mlp_case.h"

namespace pwdice::test {
namespace {

using Problem = MlpProblem;

class ReluHead : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, ReluHead, testing::ValuesIn(test_backends()), backend_name);

// With a head's gradient whose rows point one way for a `run` of rows, as in a dual step: sums of selected rows on
// the CPU. Directions meet inside some blocks; every third row is zero. Multiples by powers of two are exact.
Problem with_directions(Problem p, int64_t run = 250) {
  constexpr float kDirections[][3] = {{1, -1, 0}, {0, 0.5, 0}, {0.3f, 1, -0.7f}, {0, 0, 0}};
  const int64_t out = p.sizes.back();
  for (int64_t i = 0; i < p.n; ++i) {
    float* const row = p.d_pre.data() + i * out;
    const float g = i % 3 == 2 ? 0.f : std::copysign(std::exp2(std::round(row[0])), row[0]);
    for (int64_t j = 0; j < out; ++j) row[j] = out == 1 ? g : g * kDirections[(i / run + p.n) % 4][j];
  }
  return p;
}

TEST_P(ReluHead, GradientsMatchReference) {
  for (const int64_t n : {1, 18, 31, 33, 97, 114, 400}) {
    for (const auto& sizes :
         {std::vector<int64_t>{11, 64, 96, 3}, {3, 96, 288, 1}, {40, 64, 32, 2}, {9, 7, 64, 32, 3}}) {
      const Problem p = with_directions(Problem(n, sizes, Activation::Relu));
      SCOPED_TRACE(p.text());
      p.compare_gradients(run(p.scratch_bytes(), [&](OpRun& op) { p.call(op, true); }));
    }
  }
  const Problem many = with_directions(Problem(4107, {11, 64, 64, 3}, Activation::Relu));
  many.compare_gradients(run(many.scratch_bytes(), [&](OpRun& op) { many.call(op, true); }));
}

// What shows that rows were selected: nothing had to take the place of the ReLU layer's outputs.
TEST(ReluHeadCpu, ABlockOfOneDirectionLeavesTheOutputsBelowTheHead) {
  Context ctx;
  for (const int64_t out : {1, 3}) {
    const Problem p = with_directions(Problem(98, {11, 64, 96, out}, Activation::Relu));
    OpRun op(ctx, 1);
    p.call(op, true);
    EXPECT_EQ(op.finish()["y1"], [&] {
      OpRun forward(ctx, 1);
      p.call(forward, false);
      return forward.finish()["y1"];
    }()) << out;
  }
}

TEST(ReluHeadCpu, ManyThreads) {
  for (const int64_t n : {202, 1102, 4102}) {  // the direction that no float holds to the bit
    const Problem p = with_directions(Problem(n, {11, 64, 64, 3}, Activation::Relu), n);
    expect_same_bits_on_many_threads([&](const Context&) { return p.scratch_bytes(); },
                                     [&](OpRun& op) { p.call(op, true); });
  }
}

// A value that is not finite, in a state or in a row of the head's gradient, spoils the gradients of that row and of the
// weights, and no other row.
TEST_P(ReluHead, GradientsOfWhatIsNotFinite) {
  constexpr int64_t kRows = 40, kIn = 7, kBad = 5;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const bool in_x : {false, true}) {
      SCOPED_TRACE(std::to_string(bad) + (in_x ? " in x" : " in d_pre"));
      Problem p(kRows, {kIn, 64, 96, 1}, Activation::Relu);
      (in_x ? p.x[kBad * kIn] : p.d_pre[kBad]) = bad;
      const Outputs got = run(p.scratch_bytes(), [&](OpRun& op) { p.call(op, true); });
      const std::vector<float> d_x = got["d_x"];
      for (size_t i = 0; i < d_x.size(); ++i)
        EXPECT_EQ(std::isfinite(d_x[i]), i / kIn != kBad) << "d_x " << i;
      for (const char* name : {"d_w0", "d_w1", "d_w2", "d_b1"}) {
        const std::vector<float> sums = got[name];
        EXPECT_TRUE(std::any_of(sums.begin(), sums.end(), [](float v) { return !std::isfinite(v); })) << name;
      }
    }
  }
}

// An infinite weight, and an infinite output of the layer below, on units that are off in every row: the loss is finite,
// the gradients say it.
TEST_P(ReluHead, InfinitiesBehindUnitsThatAreOffShowInTheGradients) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr int64_t kWidth = 64, kUnit = 7, kInput = 3;
  const auto expect_not_finite = [&](const Problem& p, const char* name) {
    const Outputs got = run(p.scratch_bytes(), [&](OpRun& op) { p.call(op, true); });
    for (const float v : got["y2"]) EXPECT_TRUE(std::isfinite(v));
    const std::vector<float> values = got[name];
    EXPECT_FALSE(std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) << name;
  };
  Problem weight(40, {7, kWidth, 96, 1}, Activation::Relu);
  weight.b[0][kInput] = 20;  // never zero, so that unit kUnit sees -inf
  weight.w[1][kUnit * kWidth + kInput] = -kInf;
  expect_not_finite(weight, "d_x");
  Problem output(40, {7, kWidth, 96, 1}, Activation::Relu);
  output.b[0][kInput] = kInf;
  for (size_t unit = 0; unit < 96; ++unit) output.w[1][unit * kWidth + kInput] = -1;
  expect_not_finite(output, "d_w1");
}

}  // namespace
}  // namespace pwdice::test
