// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/activation.h"

#include <cmath>
#include <limits>

#include "op_case.h"
#include "reference.h"

namespace pwdice::test {
namespace {

class ActivationBackwardTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, ActivationBackwardTest, testing::ValuesIn(test_backends()), backend_name);

constexpr Activation kActivations[] = {Activation::None, Activation::Relu, Activation::Tanh};

template <class T>
std::vector<T> backward(Activation act, const std::vector<float>& y, const std::vector<float>& d_y) {
  std::vector<T> d_pre;
  for (size_t i = 0; i < y.size(); ++i) {
    d_pre.push_back(static_cast<T>(d_y[i]) * reference::activation_slope(act, static_cast<T>(y[i])));
  }
  return d_pre;
}

TEST_P(ActivationBackwardTest, MatchesReference) {
  for (Activation act : kActivations) {
    for (int64_t n : {0, 1, 13, 200}) {
      for (int64_t d : sizes(16)) {
        SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(d));
        const auto y = uniform(n * d, -1.f, 1.f, 1), d_y = normal(n * d, 2);
        const Outputs got = run(0, [&](OpRun& op) {
          activation_backward(
              op.ctx, {op.in(y, n, d, d + 1), op.in(d_y, n, d, d + 2), act, op.out("d_pre", n, d, d + 3)});
        });
        expect_close(got["d_pre"], backward<double>(act, y, d_y), backward<float>(act, y, d_y));
      }
    }
  }
}

// Chunks of 16384 values on the CPU, so that two threads share the work.
TEST_P(ActivationBackwardTest, SeveralChunks) {
  const int64_t n = 2000, d = 17;
  const auto y = uniform(n * d, -1.f, 1.f, 1), d_y = normal(n * d, 2);
  for (Activation act : kActivations) {
    const Outputs got = run(0, [&](OpRun& op) {
      activation_backward(
          op.ctx, {op.in(y, n, d, d + 1), op.in(d_y, n, d, d + 2), act, op.out("d_pre", n, d, d + 3)});
    });
    expect_close(got["d_pre"], backward<double>(act, y, d_y), backward<float>(act, y, d_y));
  }
}

TEST_P(ActivationBackwardTest, AgreesWithCentralDifferences) {
  const std::vector<float> pre = normal(40, 3), c = normal(40, 4);
  for (Activation act : kActivations) {
    std::vector<float> y;
    for (float v : pre) y.push_back(reference::activate(act, v));
    const Outputs got = run(0, [&](OpRun& op) {
      activation_backward(op.ctx, {op.in(y, 5, 8), op.in(c, 5, 8), act, op.out("d_pre", 5, 8)});
    });
    const auto loss = [&](const std::vector<double>& x) {
      double total = 0;
      for (size_t i = 0; i < x.size(); ++i) total += c[i] * reference::activate(act, x[i]);
      return total;
    };
    expect_gradient(got["d_pre"], loss, to<double>(pre));
  }
}

TEST_P(ActivationBackwardTest, WorksInPlace) {
  const auto y = uniform(13 * 17, -1.f, 1.f, 1), d_y = normal(13 * 17, 2);
  const Outputs got = run(0, [&](OpRun& op) {
    const Mat<float> d = op.in_out("d", d_y, 13, 17);
    activation_backward(op.ctx, {op.in(y, 13, 17), d, Activation::Tanh, d});
  });
  expect_close(got["d"], backward<double>(Activation::Tanh, y, d_y),
               backward<float>(Activation::Tanh, y, d_y));
}

TEST_P(ActivationBackwardTest, SaturatedUnitsAndBadGradients) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y{1.f, -1.f, 0.f, 0.5f}, d_y{3.f, 3.f, inf, nan};
  for (Activation act : {Activation::Relu, Activation::Tanh}) {
    const Outputs got = run(0, [&](OpRun& op) {
      activation_backward(op.ctx, {op.in(y, 1, 4), op.in(d_y, 1, 4), act, op.out("d_pre", 1, 4)});
    });
    const std::vector<float> d = got["d_pre"];
    EXPECT_EQ(d[0], act == Activation::Relu ? 3.f : 0.f);
    EXPECT_EQ(d[1], 0.f);
    EXPECT_EQ(d[2], act == Activation::Relu ? 0.f : inf);
    EXPECT_TRUE(std::isnan(d[3]));
  }
}

TEST_P(ActivationBackwardTest, RefusesWrongShapes) {
  const std::vector<float> six(6, 1.f);
  expect_error(ErrorCode::InvalidArgument, "activation_backward: d_y is 3 x 2, expected 2 x 3", [&] {
    OpRun op(context(), 0);
    activation_backward(op.ctx,
                        {op.in(six, 2, 3), op.in(six, 3, 2), Activation::Tanh, op.out("d_pre", 2, 3)});
  });
  expect_error(ErrorCode::InvalidArgument, "activation_backward: act is 3, expected 0 to 2", [&] {
    OpRun op(context(), 0);
    activation_backward(
        op.ctx, {op.in(six, 2, 3), op.in(six, 2, 3), static_cast<Activation>(3), op.out("d_pre", 2, 3)});
  });
}

}  // namespace
}  // namespace pwdice::test
