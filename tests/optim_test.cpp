// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../host/optim.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "../host/layers.h"
#include "reference.h"
#include "tape_case.h"

namespace pwdice::test {
namespace {

struct AdamReference {
  AdamOptions options;
  std::vector<double> p, m, v, average;
  int t = 0;

  void step(const std::vector<double>& gradient) {
    const double b1 = static_cast<double>(options.beta1), b2 = static_cast<double>(options.beta2);
    double scale = 1;
    if (options.clip_norm) {
      const double norm = std::sqrt(reference::dot(gradient, gradient));
      scale = std::min(1.0, static_cast<double>(*options.clip_norm) / (norm + 1e-6));
    }
    ++t;
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = scale * gradient[i] + static_cast<double>(options.weight_decay) * p[i];
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(b1, t)), v_hat = v[i] / (1 - std::pow(b2, t));
      p[i] -= static_cast<double>(options.learning_rate) * m_hat /
              (std::sqrt(v_hat) + static_cast<double>(options.eps));
      if (options.ema_decay) {
        const double decay = static_cast<double>(*options.ema_decay);
        average[i] = decay * average[i] + (1 - decay) * p[i];
      }
    }
  }
};

class Optim : public TapeTest {
 protected:
  // One entry of 37 values, in the middle of which the padding begins.
  ParamStore params_{"net"};
  Param p_ = params_.add("p", 37, 1, Init::uniform(-1, 1));

  void allocate(bool average = false) {
    params_.allocate(ctx_, average);
    params_.initialise(ctx_, 1);
  }
  // A loss whose gradient is exactly `gradient`.
  Tensor linear_loss(const std::vector<float>& gradient) {
    tape_.begin(params_);
    const Tensor loss = sum(tape_, mul(tape_, tape_.parameter(p_), tape_.constant(in_memory(gradient))));
    tape_.backward(loss);
    return loss;
  }
};
INSTANTIATE_TEST_SUITE_P(, Optim, testing::ValuesIn(test_backends()), backend_name);

TEST_P(Optim, FollowsTheFormula) {
  allocate(true);
  const auto start = to<double>(download(ctx_, Vec<float>{p_.value().data, 37}));
  for (const AdamOptions& options :
       {AdamOptions{.learning_rate = 0.01f}, AdamOptions{.learning_rate = 0.01f, .weight_decay = 0.1f},
        AdamOptions{.learning_rate = 0.01f, .clip_norm = 1.0f},
        AdamOptions{.learning_rate = 0.01f, .clip_norm = 1000.0f},
        AdamOptions{.learning_rate = 0.01f, .ema_decay = 0.9f}}) {
    params_.initialise(ctx_, 1);
    Optimiser optimiser(ctx_, params_, options);
    AdamReference want{options, start, std::vector<double>(37), std::vector<double>(37), start};
    for (int step = 0; step < 10; ++step) {
      const auto gradient = normal(37, 100 + static_cast<uint64_t>(step));
      optimiser.step(ctx_, linear_loss(gradient));
      want.step(to<double>(gradient));
      if (step == 4) {
        want.options.learning_rate = 0.002f;
        optimiser.set_learning_rate(ctx_, 0.002f);
      }
    }
    expect_within(download(ctx_, Vec<float>{p_.value().data, 37}), want.p, 2e-6);
    expect_within(download(ctx_, Vec<float>{params_.first_moments().data, 37}), want.m, 2e-6);
    expect_within(download(ctx_, Vec<float>{params_.second_moments().data, 37}), want.v, 2e-6);
    expect_within(download(ctx_, Vec<float>{params_.average().data, 37}),
                  options.ema_decay ? want.average : start, 2e-6);
    EXPECT_EQ(optimiser.report(ctx_).steps, 10);
    const auto padding = download(ctx_, params_.values());
    for (size_t i = 37; i < padding.size(); ++i) EXPECT_EQ(padding[i], 0.0f);
  }
}

TEST_P(Optim, Report) {
  allocate();
  Optimiser optimiser(ctx_, params_, {.learning_rate = 0.5f, .clip_norm = 1.0f});
  const auto gradient = normal(37, 3);
  const Tensor loss = linear_loss(gradient);
  const float value = download_scalar(ctx_, loss);
  optimiser.step(ctx_, loss);
  const Optimiser::Report report = optimiser.report(ctx_);
  EXPECT_EQ(report.loss, value);
  EXPECT_NEAR(static_cast<double>(report.gradient_norm),
              std::sqrt(reference::dot(to<double>(gradient), to<double>(gradient))), 1e-5);
  EXPECT_EQ(report.learning_rate, 0.5f);
  EXPECT_EQ(report.steps, 1);
  EXPECT_NO_THROW(optimiser.check(ctx_));
}

TEST_P(Optim, NotFiniteLeavesEverything) {
  allocate(true);
  Optimiser optimiser(ctx_, params_, {.clip_norm = 1.0f, .ema_decay = 0.9f});
  optimiser.step(ctx_, linear_loss(normal(37, 1)));
  const auto bytes_of = [&](const std::vector<StateSpan>& spans) {
    std::vector<std::vector<char>> all;
    for (const StateSpan& span : spans) {
      all.emplace_back(span.bytes);
      download(ctx_, all.back().data(), span.data, span.bytes);
    }
    return all;
  };
  const auto before = bytes_of(optimiser.state());
  ASSERT_EQ(before.size(), 6u);  // values, two moments, average, steps, rate
  // A GPU tells when it is asked; other steps may have run since the one that failed.
  const char* sentence = GetParam() == Backend::Cuda ? "net: the loss or gradient of step 2 is not finite"
                                                     : "net: step 2 has loss ";
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto gradient = normal(37, 2);
    gradient[11] = bad;
    expect_error(ErrorCode::NotFinite, sentence, [&] {
      optimiser.step(ctx_, linear_loss(gradient));
      optimiser.check(ctx_);
    });
    EXPECT_EQ(bytes_of(optimiser.state()), before);
  }
  // A loss alone is enough.
  const Tensor fine = linear_loss(normal(37, 2));
  expect_error(ErrorCode::NotFinite, sentence, [&] {
    optimiser.step(ctx_, add(tape_, fine, tape_.full(1, 1, std::numeric_limits<float>::quiet_NaN())));
    optimiser.check(ctx_);
  });
  EXPECT_EQ(bytes_of(optimiser.state()), before);
  // And the next good step is taken.
  optimiser.step(ctx_, linear_loss(normal(37, 4)));
  EXPECT_NO_THROW(optimiser.check(ctx_));
  EXPECT_EQ(optimiser.report(ctx_).steps, 2);
}

// Restoring the bytes of every state span continues the run as if it had not stopped.
TEST_P(Optim, StateResumesExactly) {
  allocate(true);
  Optimiser optimiser(ctx_, params_, {.ema_decay = 0.99f});
  const auto run = [&](int from, int until) {
    for (int step = from; step < until; ++step)
      optimiser.step(ctx_, linear_loss(normal(37, static_cast<uint64_t>(step))));
    return download(ctx_, params_.values());
  };
  run(0, 5);
  std::vector<std::vector<char>> saved;
  for (const StateSpan& span : optimiser.state()) {
    saved.emplace_back(span.bytes);
    download(ctx_, saved.back().data(), span.data, span.bytes);
  }
  const auto uninterrupted = run(5, 9);
  size_t k = 0;
  for (const StateSpan& span : optimiser.state()) upload(ctx_, span.data, saved[k++].data(), span.bytes);
  EXPECT_EQ(run(5, 9), uninterrupted);
}

TEST_P(Optim, BadOptions) {
  allocate();
  const auto make = [&](const AdamOptions& options) { Optimiser(ctx_, params_, options); };
  expect_error(ErrorCode::InvalidArgument, "net: betas 1", [&] { make({.beta1 = 1.0f}); });
  expect_error(ErrorCode::InvalidArgument, "net: clip norm 0", [&] { make({.clip_norm = 0.0f}); });
  expect_error(ErrorCode::InvalidArgument, "net: an average", [&] { make({.ema_decay = 0.9f}); });
  expect_error(ErrorCode::InvalidArgument, "net: learning rate -1", [&] { make({.learning_rate = -1.0f}); });
}

}  // namespace
}  // namespace pwdice::test
