// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/policy_nll.h"

#include <cmath>
#include <limits>

#include "op_case.h"
#include "reference.h"

namespace pwdice::test {
namespace {

class PolicyNll : public OpTest {
 protected:
  Outputs nll(const std::vector<float>& head, const std::vector<float>& action,
              const std::vector<float>& weight, int64_t width, float d_loss = 1.f) {
    const auto n = static_cast<int64_t>(weight.size());
    return run(policy_nll_scratch_bytes(n), [&](OpRun& op) {
      const Mat<const float> h = op.in(head, n, 2 * width, 2 * width + 1),
                             a = op.in(action, n, width, width + 2);
      const Vec<const float> w = op.in(weight);
      policy_nll_forward(op.ctx, {h, a, w, op.out("log_prob", n), op.out("loss", 1)});
      policy_nll_backward(op.ctx, {h, a, w, op.in(d_loss), op.out("d_head", n, 2 * width, 2 * width + 3)});
    });
  }
};
INSTANTIATE_TEST_SUITE_P(, PolicyNll, testing::ValuesIn(test_backends()), backend_name);

template <class T>
struct Result {
  std::vector<T> log_prob, d_head;
  T loss = 0;
};

template <class T>
Result<T> policy(const std::vector<T>& head, const std::vector<T>& action, const std::vector<T>& weight,
                 int64_t width, T d_loss = 1) {
  const auto n = static_cast<int64_t>(weight.size());
  const reference::Matrix<T> h(n, 2 * width, head), a(n, width, action);
  reference::Matrix<T> d(n, 2 * width);
  Result<T> r;
  for (int64_t i = 0; i < n; ++i) {
    const T w = weight[static_cast<size_t>(i)], g = d_loss * w / static_cast<T>(n);
    T log_prob = 0;
    for (int64_t k = 0; k < width; ++k) {
      const T t = std::tanh(h(i, width + k)), logvar = 7 * t - 3, bound = T(1) - T(1e-6);
      const T e = std::atanh(std::clamp(a(i, k), -bound, bound)) - h(i, k), precision = std::exp(-logvar);
      log_prob += T(-0.5) * (std::log(T(2 * M_PI)) + logvar + e * e * precision) -
                  std::log(1 - a(i, k) * a(i, k) + T(1e-10));
      d(i, k) = -g * e * precision;
      d(i, width + k) = g / 2 * (1 - e * e * precision) * 7 * (1 - t * t);
    }
    r.log_prob.push_back(log_prob);
    r.loss -= w * log_prob / static_cast<T>(n);
  }
  r.d_head = d.data;
  return r;
}

TEST_P(PolicyNll, MatchesReferenceForwardAndBackward) {
  for (int64_t n : {int64_t{1}, int64_t{13}, kPolicyRows - 1, kPolicyRows + 1}) {
    for (int64_t width : {int64_t{1}, int64_t{3}, int64_t{8}, int64_t{21}}) {
      SCOPED_TRACE(std::to_string(n) + " rows of " + std::to_string(width));
      const auto head = normal(n * 2 * width, 1), action = uniform(n * width, -0.99f, 0.99f, 2);
      const auto weight = uniform(n, 0.f, 1.f, 3);
      const Outputs got = nll(head, action, weight, width, 0.7f);
      const auto want =
          policy(to<double>(head), to<double>(action), to<double>(weight), width, static_cast<double>(0.7f));
      const auto plain = policy(head, action, weight, width, 0.7f);
      expect_close(got["log_prob"], want.log_prob, plain.log_prob);
      expect_close(got.value("loss"), want.loss, plain.loss);
      expect_close(got["d_head"], want.d_head, plain.d_head);
    }
  }
}

// Wider than one flat buffer of the CPU backend.
TEST_P(PolicyNll, VeryWideActions) {
  const int64_t n = 3, width = 1500;
  const auto head = normal(n * 2 * width, 1), action = uniform(n * width, -0.99f, 0.99f, 2),
             weight = uniform(n, 0.f, 1.f, 3);
  const Outputs got = nll(head, action, weight, width);
  const auto want = policy(to<double>(head), to<double>(action), to<double>(weight), width);
  const auto plain = policy(head, action, weight, width);
  expect_close(got["log_prob"], want.log_prob, plain.log_prob);
  expect_close(got["d_head"], want.d_head, plain.d_head);
}

TEST_P(PolicyNll, GradientAgreesWithCentralDifferences) {
  const int64_t n = 4, width = 3;
  const auto head = normal(n * 2 * width, 1), action = uniform(n * width, -0.9f, 0.9f, 2),
             weight = uniform(n, 0.f, 1.f, 3);
  const auto loss = [&](const std::vector<double>& h) {
    return policy(h, to<double>(action), to<double>(weight), width).loss;
  };
  expect_gradient(nll(head, action, weight, width)["d_head"], loss, to<double>(head), 1e-5);
}

// The double reference clamps at 1 - 1e-6 exactly; rounding that bound to float would cost 1e-3 here.
TEST_P(PolicyNll, ActionsAtTheBounds) {
  const int64_t width = 1;
  const std::vector<float> action = {1.f, -1.f, 0.99999994f, -0.999999f, 0.9999f, 0.f};
  const std::vector<float> head = {0.1f, -5.f, 0.f, 0.f, 3.f, 5.f, 0.f, 1.f, -1.f, -1.f, 1e-6f, 0.f};
  const std::vector<float> weight(6, 1.f);
  const Outputs got = nll(head, action, weight, width);
  const auto want = policy(to<double>(head), to<double>(action), to<double>(weight), width);
  expect_ulps(got["log_prob"], want.log_prob, 16);
  expect_within(got.value("loss"), want.loss, 1e-6);
  expect_within(got["d_head"], want.d_head, 1e-6);
}

TEST_P(PolicyNll, HugeHeadsAndZeroWeightsStayFinite) {
  const std::vector<float> head = {1e4f, 1e4f, -1e4f, -1e4f}, action = {0.5f, -1.f}, weight = {0.f, 1.f};
  const Outputs got = nll(head, action, weight, 1);
  const auto want = policy(to<double>(head), to<double>(action), to<double>(weight), 1);
  expect_ulps(got["log_prob"], want.log_prob, 16);
  const auto d_head = got["d_head"];
  EXPECT_EQ(d_head[0], 0.f);
  EXPECT_EQ(d_head[1], 0.f);
  for (float g : d_head) EXPECT_TRUE(std::isfinite(g));
}

TEST_P(PolicyNll, RefusesWrongShapes) {
  Context& ctx = context();
  float unused = 0;
  const Mat<float> h{&unused, 3, 4}, a{&unused, 3, 2}, odd{&unused, 3, 3}, none{&unused, 0, 2};
  const Vec<float> one{&unused, 1}, three{&unused, 3};
  const auto bad = ErrorCode::InvalidArgument;
  expect_error(bad, "policy_nll_forward: head is 3 x 3, expected 3 x 4", [&] {
    policy_nll_forward(ctx, {odd, a, three, three, one});
  });
  expect_error(bad, "policy_nll_forward: weight has 1 values, action has 3 rows", [&] {
    policy_nll_forward(ctx, {h, a, one, three, one});
  });
  expect_error(bad, "policy_nll_forward: action is 0 x 2", [&] {
    policy_nll_forward(ctx, {h, none, one, three, one});
  });
  expect_error(bad, "policy_nll_backward: d_head is 3 x 2, head is 3 x 4", [&] {
    policy_nll_backward(ctx, {h, a, three, one, a});
  });
}

TEST_P(PolicyNll, BadInputIsNamedOnTheCpuAndPropagatesOnAGpu) {
  const std::vector<float> head = {0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f}, weight = {1.f, 1.f};
  std::vector<float> bad_head = head, action(4, 0.5f), outside = action;
  bad_head[5] = std::numeric_limits<float>::infinity();
  outside[3] = 1.5f;
  if (GetParam() == Backend::Cpu) {
    expect_error(ErrorCode::NotFinite, "policy_nll_forward: head is inf in row 1, column 1",
                 [&] { nll(bad_head, action, weight, 2); });
    expect_error(ErrorCode::NotFinite,
                 "policy_nll_forward: action is 1.5 in row 1, column 1, expected -1 to 1",
                 [&] { nll(head, outside, weight, 2); });
  } else {
    EXPECT_TRUE(std::isnan(nll(head, outside, weight, 2).value("loss")));
  }
}

}  // namespace
}  // namespace pwdice::test
