// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Every elementary function against double over its whole range, on every SIMD target this CPU can run.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

// foreach_target.h includes this file once per target and must come before everything else of Highway.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/vector_math_test.cpp"
#include "hwy/foreach_target.h"
#include "../kernels/cpu/vector_math-inl.h"
// clang-format on

#include "simd_targets.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

// Applies f to n values, n a multiple of the lane count.
template <class F>
void map(const float* x, float* y, size_t n, F f) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
}

void run_exp(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return exp(d, v); });
}
void run_exp_nonpositive(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return exp_nonpositive(d, v); });
}
void run_exp2_nonpositive(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return exp2_nonpositive(d, v); });
}
void run_log(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return log(d, v); });
}
void run_tanh(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return tanh(d, v); });
}
void run_sigmoid(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return sigmoid(d, v); });
}
void run_softplus(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return softplus(d, v); });
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {
using test::on_every_target;

HWY_EXPORT(run_exp);
HWY_EXPORT(run_exp_nonpositive);
HWY_EXPORT(run_exp2_nonpositive);
HWY_EXPORT(run_log);
HWY_EXPORT(run_tanh);
HWY_EXPORT(run_sigmoid);
HWY_EXPORT(run_softplus);

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kPad = 64;  // more than the lanes of any target

// Distance in units of the last place of the exact result; subnormal results count in units of 2^-149.
double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kInf;
  const float nearest = static_cast<float>(exact);
  if (std::isinf(nearest)) return got == nearest ? 0 : kInf;
  const double unit = std::max(std::ldexp(1.0, std::ilogb(exact) - 23), std::ldexp(1.0, -149));
  return std::abs(static_cast<double>(got) - exact) / unit;
}

// Every `step`-th float between two positive floats, bit patterns in order: all binades equally dense.
std::vector<float> sweep(float low, float high, uint32_t step) {
  std::vector<float> x;
  for (uint32_t b = std::bit_cast<uint32_t>(low); b <= std::bit_cast<uint32_t>(high); b += step) {
    x.push_back(std::bit_cast<float>(b));
  }
  return x;
}

std::vector<float> with_negatives(std::vector<float> x) {
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) x.push_back(-x[i]);
  return x;
}

using Map = void (*)(const float*, float*, size_t);
using Exact = double (*)(double);

std::vector<float> apply(Map run, std::vector<float> x) {
  const size_t n = x.size();
  x.resize((n + kPad - 1) / kPad * kPad, 0.5f);
  std::vector<float> y(x.size());
  run(x.data(), y.data(), x.size());
  y.resize(n);
  return y;
}

void expect_within(const char* what, Map run, Exact exact, const std::vector<float>& x, double bound) {
  const std::vector<float> y = apply(run, x);
  double worst = 0;
  float at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = ulps(y[i], exact(x[i]));
    if (u > worst) worst = u, at = x[i];
  }
  EXPECT_LE(worst, bound) << what << " at " << at << " gives " << apply(run, {at})[0] << ", exact "
                          << exact(at);
}

void expect_values(const char* what, Map run, const std::vector<float>& x,
                   const std::vector<float>& expected) {
  const std::vector<float> y = apply(run, x);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(y[i])) << what << "(" << x[i] << ") = " << y[i];
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected[i]))
          << what << "(" << x[i] << ") = " << y[i];
    }
  }
}

const float kPayloadNaN =
    std::bit_cast<float>(0x7fc00001u);  // a NaN whose low bits could leak into an exponent

TEST(VectorMath, Exp) {
  on_every_target([] {
    const Map run = &HWY_DYNAMIC_DISPATCH(run_exp);
    expect_within("exp", run, std::exp, with_negatives(sweep(1e-30f, 110.f, 997)), 1.2);
    expect_values("exp", run, {0.f, -0.f, kInf, -kInf, 200.f, -200.f, 88.73f, -104.f, kNaN, kPayloadNaN},
                  {1.f, 1.f, kInf, 0.f, kInf, 0.f, kInf, 0.f, kNaN, kNaN});
  });
}

TEST(VectorMath, ExpNonpositive) {
  on_every_target([] {
    const Map run = &HWY_DYNAMIC_DISPATCH(run_exp_nonpositive);
    std::vector<float> x = sweep(1e-30f, 87.3f, 499);
    for (float& v : x) v = -v;
    expect_within("exp_nonpositive", run, std::exp, x, 1.2);
    expect_values("exp_nonpositive", run, {0.f, -0.f, -kInf, -88.f, -3e38f, kNaN, kPayloadNaN},
                  {1.f, 1.f, 0.f, 0.f, 0.f, kNaN, kNaN});
    for (const float v : sweep(87.3f, 88.f, 1)) {
      const float y = apply(run, {-v})[0];
      ASSERT_NEAR(y, std::exp(-static_cast<double>(v)), 1.2e-38) << v;
    }
  });
}

TEST(VectorMath, Exp2Nonpositive) {
  on_every_target([] {
    const Map run = &HWY_DYNAMIC_DISPATCH(run_exp2_nonpositive);
    std::vector<float> x = sweep(1e-30f, 125.9f, 499);
    for (float& v : x) v = -v;
    expect_within("exp2_nonpositive", run, std::exp2, x, 1.2);
    expect_within("exp2_nonpositive", run, std::exp2, sweep(1e-30f, 64.f, 499), 1.2);
    expect_values("exp2_nonpositive", run,
                  {0.f, -0.f, -1.f, -126.f, -kInf, -127.f, -3e38f, 24.f, kNaN, kPayloadNaN},
                  {1.f, 1.f, 0.5f, 0x1p-126f, 0.f, 0.f, 0.f, 0x1p24f, kNaN, kNaN});
  });
}

TEST(VectorMath, Log) {
  on_every_target([] {
    const Map run = &HWY_DYNAMIC_DISPATCH(run_log);
    expect_within("log", run, std::log, sweep(1e-45f, 3.4e38f, 1999), 1);
    expect_within("log near 1", run, std::log, sweep(0.5f, 2.f, 7), 1);
    expect_values("log", run, {1.f, 0.f, -0.f, -1.f, -1e-40f, -kInf, kInf, kNaN, kPayloadNaN},
                  {0.f, -kInf, -kInf, kNaN, kNaN, kNaN, kInf, kNaN, kNaN});
  });
}

TEST(VectorMath, Tanh) {
  on_every_target([] {
    const Map run = &HWY_DYNAMIC_DISPATCH(run_tanh);
    expect_within("tanh", run, std::tanh, with_negatives(sweep(1e-30f, 30.f, 997)), 3);
    expect_values("tanh", run, {0.f, -0.f, kInf, -kInf, 12.f, -12.f, kNaN, kPayloadNaN},
                  {0.f, -0.f, 1.f, -1.f, 1.f, -1.f, kNaN, kNaN});
  });
}

TEST(VectorMath, Sigmoid) {
  on_every_target([] {
    const Map run = &HWY_DYNAMIC_DISPATCH(run_sigmoid);
    const auto exact = [](double x) {
      return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
    };
    expect_within("sigmoid", run, exact, with_negatives(sweep(1e-30f, 87.3f, 997)), 3);
    expect_values("sigmoid", run, {0.f, kInf, -kInf, 100.f, -100.f, kNaN, kPayloadNaN},
                  {0.5f, 1.f, 0.f, 1.f, 0.f, kNaN, kNaN});
  });
}

TEST(VectorMath, Softplus) {
  on_every_target([] {
    const Map run = &HWY_DYNAMIC_DISPATCH(run_softplus);
    const auto exact = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); };
    expect_within("softplus", run, exact, with_negatives(sweep(1e-30f, 87.3f, 997)), 2);
    expect_values("softplus", run, {kInf, -kInf, 1e30f, -1e30f, kNaN, kPayloadNaN},
                  {kInf, 0.f, 1e30f, 0.f, kNaN, kNaN});
  });
}

}  // namespace
}  // namespace pwdice::cpu

#endif  // HWY_ONCE
