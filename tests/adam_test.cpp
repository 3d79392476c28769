// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/adam.h"

#include <cmath>
#include <limits>

#include "../kernels/reduce.h"
#include "op_case.h"
#include "reference.h"

namespace pwdice::test {
namespace {

constexpr int64_t kChunk = 8192;  // of the CPU backend
constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEps = 1e-8f;

class AdamOp : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, AdamOp, testing::ValuesIn(test_backends()), backend_name);

template <class T>
struct State {
  std::vector<T> param, m, v;
};

template <class T>
void step(State<T>& s, const std::vector<float>& grad, int t, double lr, double scale, double weight_decay) {
  const T b1 = static_cast<T>(kBeta1), b2 = static_cast<T>(kBeta2);
  for (size_t i = 0; i < grad.size(); ++i) {
    const T g = static_cast<T>(scale) * static_cast<T>(grad[i]) + static_cast<T>(weight_decay) * s.param[i];
    s.m[i] = b1 * s.m[i] + (1 - b1) * g;
    s.v[i] = b2 * s.v[i] + (1 - b2) * g * g;
    const T m = s.m[i] / (1 - std::pow(b1, static_cast<T>(t))),
            v = s.v[i] / (1 - std::pow(b2, static_cast<T>(t)));
    s.param[i] -= static_cast<T>(lr) * m / (std::sqrt(v) + static_cast<T>(kEps));
  }
}

TEST_P(AdamOp, ThreeStepsMatchReference) {
  for (int64_t n : sizes(kChunk)) {
    for (float weight_decay : {0.f, 0.01f}) {
      SCOPED_TRACE("n = " + std::to_string(n));
      const auto param = normal(n, 1), zero = std::vector<float>(static_cast<size_t>(n));
      const std::vector<float> grads[] = {normal(n, 2), normal(n, 3), make_data(Data::Tiny, n, 4)};
      const Outputs got = run(0, [&](OpRun& op) {
        const Vec<float> p = op.in_out("param", param), m = op.in_out("m", zero), v = op.in_out("v", zero);
        const Vec<int64_t> t = op.in_out("t", std::vector<int64_t>{0});
        for (const auto& grad : grads) {
          adam(op.ctx, {kBeta1, kBeta2, kEps, weight_decay, op.in(1e-3f), op.in(0.5f), op.in(1.f), t,
                        op.in(grad), p, m, v});
        }
      });
      State<double> want{to<double>(param), to<double>(zero), to<double>(zero)};
      State<float> plain{param, zero, zero};
      int t = 0;
      for (const auto& grad : grads) {
        ++t;
        step(want, grad, t, static_cast<double>(1e-3f), 0.5, static_cast<double>(weight_decay));
        step(plain, grad, t, 1e-3, 0.5, static_cast<double>(weight_decay));
      }
      expect_close(got["param"], want.param, plain.param);
      expect_close(got["m"], want.m, plain.m);
      expect_close(got["v"], want.v, plain.v);
      EXPECT_EQ(got.as<int64_t>("t"), std::vector<int64_t>{3});
    }
  }
}

// |step| = lr in the first step, whatever the gradient's size: the bias corrections must cancel exactly.
TEST_P(AdamOp, FirstStepHasLengthLr) {
  const std::vector<float> grad = {1e-3f, -1.f, 1e10f, -1e15f, 0.f}, zero(5);
  const Outputs got = run(0, [&](OpRun& op) {
    adam(op.ctx, {kBeta1, kBeta2, kEps, 0.f, op.in(0.5f), op.in(1.f), op.in(1.f),
                  op.in_out("t", std::vector<int64_t>{0}), op.in(grad), op.in_out("param", zero),
                  op.in_out("m", zero), op.in_out("v", zero)});
  });
  expect_within(got["param"], {-0.5, 0.5, -0.5, 0.5, 0}, 2e-5);
}

TEST_P(AdamOp, NothingChangesWithoutOk) {
  const auto param = normal(100, 1), m = normal(100, 2), v = uniform(100, 0.f, 1.f, 3),
             average = normal(100, 4);
  const std::vector<float> grad(100, std::numeric_limits<float>::quiet_NaN());
  const Outputs got = run(0, [&](OpRun& op) {
    const Vec<float> p = op.in_out("param", param);
    adam(op.ctx,
         {kBeta1, kBeta2, kEps, 0.01f, op.in(1e-3f), op.in(1.f), op.in(0.f),
          op.in_out("t", std::vector<int64_t>{41}), op.in(grad), p, op.in_out("m", m), op.in_out("v", v)});
    ema(op.ctx, {0.9f, op.in(0.f), op.in(grad), op.in_out("average", average)});
  });
  EXPECT_EQ(got["param"], param);
  EXPECT_EQ(got["m"], m);
  EXPECT_EQ(got["v"], v);
  EXPECT_EQ(got["average"], average);
  EXPECT_EQ(got.as<int64_t>("t"), std::vector<int64_t>{41});
}

TEST_P(AdamOp, ClipScale) {
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{13}, kReduceChunk + 1}) {
    for (float max_norm : {1e-3f, 1.f, 1e6f}) {
      const auto grad = normal(n);
      const Outputs got = run(reduce_scratch_bytes(n), [&](OpRun& op) {
        clip_scale(op.ctx, {op.in(grad), max_norm, op.out("norm", 1), op.out("scale", 1)});
      });
      const double norm = std::sqrt(reference::dot(to<double>(grad), to<double>(grad)));
      expect_ulps(got["norm"], {norm}, 4);
      expect_ulps(got["scale"], {std::min(1.0, static_cast<double>(max_norm) / (norm + 1e-6))}, 8);
    }
  }
}

TEST_P(AdamOp, ClipScaleOfBadGradients) {
  const Outputs got = run(reduce_scratch_bytes(3), [&](OpRun& op) {
    clip_scale(op.ctx, {op.in(std::vector<float>{1.f, std::numeric_limits<float>::quiet_NaN(), 0.f}), 1.f,
                        op.out("norm", 1), op.out("scale", 1)});
    clip_scale(op.ctx, {op.in(std::vector<float>{0.f, 0.f, 0.f}), 1.f, op.out("zero_norm", 1),
                        op.out("zero_scale", 1)});
  });
  EXPECT_TRUE(std::isnan(got.value("norm")) && std::isnan(got.value("scale")));
  EXPECT_EQ(got.value("zero_norm"), 0.f);
  EXPECT_EQ(got.value("zero_scale"), 1.f);
}

TEST_P(AdamOp, Ema) {
  for (int64_t n : sizes(kChunk)) {
    const auto param = normal(n, 1), average = normal(n, 2);
    const Outputs got = run(0, [&](OpRun& op) {
      ema(op.ctx, {0.995f, op.in(1.f), op.in(param), op.in_out("average", average)});
      ema(op.ctx, {0.f, op.in(1.f), op.in(param), op.in_out("copy", average)});
      ema(op.ctx, {1.f, op.in(1.f), op.in(param), op.in_out("kept", average)});
    });
    std::vector<double> want;
    const double decay = static_cast<double>(0.995f);
    for (size_t i = 0; i < param.size(); ++i) {
      want.push_back(decay * static_cast<double>(average[i]) + (1 - decay) * static_cast<double>(param[i]));
    }
    expect_within(got["average"], want, 2e-7);
    EXPECT_EQ(got["copy"], param);
    EXPECT_EQ(got["kept"], average);
  }
}

TEST_P(AdamOp, RefusesWrongArguments) {
  Context& ctx = context();
  float unused = 0;
  int64_t count = 0;
  const Vec<float> one{&unused, 1}, two{&unused, 2};
  const Vec<int64_t> t{&count, 1};
  const auto bad = ErrorCode::InvalidArgument;
  expect_error(bad, "adam: grad has 1 values, expected 2", [&] {
    adam(ctx, {kBeta1, kBeta2, kEps, 0, one, one, one, t, one, two, two, two});
  });
  expect_error(bad, "adam: the betas are 0.9 and 1, expected 0 to 1", [&] {
    adam(ctx, {kBeta1, 1.f, kEps, 0, one, one, one, t, two, two, two, two});
  });
  expect_error(bad, "adam: lr has 2 values, expected 1", [&] {
    adam(ctx, {kBeta1, kBeta2, kEps, 0, two, one, one, t, two, two, two, two});
  });
  expect_error(bad, "adam: eps is 0", [&] {
    adam(ctx, {kBeta1, kBeta2, 0, 0, one, one, one, t, two, two, two, two});
  });
  expect_error(bad, "adam: weight_decay is nan", [&] {
    adam(ctx, {kBeta1, kBeta2, kEps, NAN, one, one, one, t, two, two, two, two});
  });
  expect_error(bad, "clip_scale: max_norm is 0", [&] { clip_scale(ctx, {two, 0.f, one, one}); });
  expect_error(bad, "ema: decay is 1.5, expected 0 to 1", [&] { ema(ctx, {1.5f, one, two, two}); });
  expect_error(bad, "ema: average has 1 values, expected 2", [&] { ema(ctx, {0.5f, one, two, one}); });
  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace pwdice::test
