// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/bce.h"

#include <cmath>
#include <limits>

#include "op_case.h"
#include "reference.h"

namespace pwdice::test {
namespace {

class Bce : public OpTest {
 protected:
  Outputs bce(const std::vector<float>& logits, int64_t positives, float d_loss = 1.f) {
    const auto n = static_cast<int64_t>(logits.size());
    return run(bce_scratch_bytes(n), [&](OpRun& op) {
      const Vec<const float> h = op.in(logits);
      bce_forward(op.ctx, {h, positives, op.out("loss", 1)});
      bce_backward(op.ctx, {h, positives, op.in(d_loss), op.out("d_logits", n)});
    });
  }
};
INSTANTIATE_TEST_SUITE_P(, Bce, testing::ValuesIn(test_backends()), backend_name);

template <class T>
T loss(const std::vector<T>& h, int64_t positives) {
  const auto p = static_cast<size_t>(positives);
  T positive = 0, negative = 0;
  for (size_t i = 0; i < h.size(); ++i)
    (i < p ? positive : negative) += reference::softplus(i < p ? -h[i] : h[i]);
  return positive / static_cast<T>(p) + negative / static_cast<T>(h.size() - p);
}

template <class T>
std::vector<T> gradient(const std::vector<T>& h, int64_t positives, T d_loss) {
  const auto p = static_cast<size_t>(positives);
  std::vector<T> d_h;
  for (size_t i = 0; i < h.size(); ++i) {
    d_h.push_back(i < p ? -d_loss * reference::sigmoid(-h[i]) / static_cast<T>(p)
                        : d_loss * reference::sigmoid(h[i]) / static_cast<T>(h.size() - p));
  }
  return d_h;
}

TEST_P(Bce, MatchesReferenceForwardAndBackward) {
  using Shape = std::pair<int64_t, int64_t>;  // n, positives
  for (auto [n, p] :
       {Shape{2, 1}, Shape{13, 5}, Shape{1024, 512}, Shape{1023, 1022}, Shape{kBceChunk + 1, kBceChunk},
        Shape{kBceChunk + 1, 1}, Shape{3 * kBceChunk + 7, kBceChunk + 1}}) {
    for (Data data : kAllData) {
      SCOPED_TRACE(std::to_string(p) + " of " + std::to_string(n) + ", " + name(data));
      const auto h = make_data(data, n);
      const Outputs got = bce(h, p, 0.7f);
      expect_close(got.value("loss"), loss(to<double>(h), p), loss(h, p));
      expect_close(got["d_logits"], gradient(to<double>(h), p, static_cast<double>(0.7f)),
                   gradient(h, p, 0.7f));
    }
  }
}

TEST_P(Bce, GradientAgreesWithCentralDifferences) {
  const auto h = normal(20);
  expect_gradient(
      bce(h, 7)["d_logits"], [](const std::vector<double>& x) { return loss(x, 7); }, to<double>(h), 1e-5);
}

TEST_P(Bce, SaturatedLogitsStayFinite) {
  const std::vector<float> h = {1e4f, -1e4f, 1e4f, -1e4f};
  const Outputs got = bce(h, 2);
  EXPECT_EQ(got.value("loss"), 1e4f);  // each mean: (0 + 1e4)/2
  EXPECT_EQ(got["d_logits"], (std::vector<float>{0.f, -0.5f, 0.5f, 0.f}));
}

TEST_P(Bce, RefusesWrongArguments) {
  Context& ctx = context();
  float unused = 0;
  const Vec<float> one{&unused, 1}, three{&unused, 3};
  const auto bad = ErrorCode::InvalidArgument;
  expect_error(bad, "bce_forward: 0 of 3 logits are positives", [&] { bce_forward(ctx, {three, 0, one}); });
  expect_error(bad, "bce_forward: 3 of 3 logits are positives", [&] { bce_forward(ctx, {three, 3, one}); });
  expect_error(bad, "bce_forward: loss has 3 values, expected 1", [&] {
    bce_forward(ctx, {three, 1, three});
  });
  expect_error(bad, "bce_backward: d_logits has 1 values, logits has 3", [&] {
    bce_backward(ctx, {three, 1, one, one});
  });
}

TEST_P(Bce, NanLogitIsNamedOnTheCpuAndPropagatesOnAGpu) {
  std::vector<float> h = normal(10);
  h[7] = std::numeric_limits<float>::quiet_NaN();
  if (GetParam() == Backend::Cpu) {
    expect_error(ErrorCode::NotFinite, "bce_forward: logits is nan in row 7", [&] { bce(h, 5); });
  } else {
    EXPECT_TRUE(std::isnan(bce(h, 5).value("loss")));
  }
}

TEST(DiscriminatorReward, IsTheLogitUpToAConstant) {
  EXPECT_EQ(discriminator_reward(1.5f, 0.f), 1.5f);
  EXPECT_EQ(discriminator_reward(1e4f, 0.01f), 1e4f);  // the literal form is infinite here
  for (double alpha : {0.01, 0.1, 0.5}) {
    for (double z : {-8.0, -1.0, 0.0, 3.0, 9.0}) {
      const double s = reference::sigmoid(z) / (1 + alpha);
      const double literal = -std::log(1 - alpha) + std::log(s) - std::log(1 - (1 + alpha) * s);
      EXPECT_NEAR(static_cast<double>(discriminator_reward(static_cast<float>(z), static_cast<float>(alpha))),
                  literal, 1e-6);
    }
  }
}

}  // namespace
}  // namespace pwdice::test
