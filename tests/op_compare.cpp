// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The comparisons and the data of op_case.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "op_case.h"

namespace pwdice::test {
namespace {

constexpr double kUlp = 0x1p-23;

double scale_of(const std::vector<double>& want) {
  double scale = 0;
  for (double w : want) {
    if (std::isfinite(w)) scale = std::max(scale, std::abs(w));
  }
  return scale;
}

// A reference beyond float's range stands for an infinity.
bool same_kind(float got, double want) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::abs(want) > static_cast<double>(std::numeric_limits<float>::max())) {
    return std::isinf(got) && std::signbit(got) == std::signbit(want);
  }
  return std::isfinite(got);
}

// Checks every element against its own bound; reports the worst one only.
template <class Bound>
void expect_bounded(const std::vector<float>& got, const std::vector<double>& want, Bound&& bound) {
  ASSERT_EQ(got.size(), want.size());
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!same_kind(got[i], want[i])) {
      ADD_FAILURE() << "element " << i << " is " << got[i] << ", expected " << want[i];
      return;
    }
    if (!std::isfinite(got[i])) continue;
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    const double excess = error == 0 ? 0 : error / bound(i);
    if (!(excess <= worst)) worst = excess, at = i;
  }
  EXPECT_LE(worst, 1.0) << "element " << at << " of " << got.size() << " is " << got[at] << ", expected "
                        << want[at] << " within " << bound(at);
}

}  // namespace

void expect_close(const std::vector<float>& got, const std::vector<double>& want,
                  const std::vector<float>& plain) {
  ASSERT_EQ(plain.size(), want.size());
  double error = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double e = std::abs(static_cast<double>(plain[i]) - want[i]);
    if (std::isfinite(e)) error = std::max(error, e);
  }
  const double limit = 4 * error + 4 * kUlp * scale_of(want) + std::numeric_limits<float>::min();
  expect_bounded(got, want, [&](size_t) { return limit; });
}

void expect_close(float got, double want, float plain) {
  expect_close(std::vector<float>{got}, std::vector<double>{want}, std::vector<float>{plain});
}

void expect_within(const std::vector<float>& got, const std::vector<double>& want, double rtol, double atol) {
  const double limit = rtol * scale_of(want) + atol;
  expect_bounded(got, want, [&](size_t) { return limit; });
}

void expect_within(float got, double want, double rtol, double atol) {
  expect_within(std::vector<float>{got}, std::vector<double>{want}, rtol, atol);
}

void expect_ulps(const std::vector<float>& got, const std::vector<double>& want, double ulps) {
  expect_bounded(got, want, [&](size_t i) {
    return ulps * kUlp * std::max(std::abs(want[i]), static_cast<double>(std::numeric_limits<float>::min()));
  });
}

template <class T>
void expect_gradient(const std::vector<T>& gradient, const Function& f, const std::vector<double>& x,
                     double rtol, int64_t limit) {
  ASSERT_EQ(gradient.size(), x.size());
  const auto n = static_cast<int64_t>(x.size());
  const int64_t count = std::min(n, limit);
  std::vector<double> point = x, difference(static_cast<size_t>(count));
  std::vector<size_t> at(static_cast<size_t>(count));
  double scale = 0;
  for (int64_t k = 0; k < count; ++k) {
    const auto c = static_cast<size_t>(k), i = static_cast<size_t>(k * n / count);
    const double h = 1e-5 * std::max(1.0, std::abs(x[i]));
    point[i] = x[i] + h;
    const double up = f(point);
    point[i] = x[i] - h;
    difference[c] = (up - f(point)) / (2 * h);
    point[i] = x[i];
    at[c] = i;
    scale = std::max(scale, std::abs(difference[c]));
  }
  for (size_t c = 0; c < at.size(); ++c) {
    ASSERT_NEAR(static_cast<double>(gradient[at[c]]), difference[c], rtol * scale + 1e-9)
        << "gradient at coordinate " << at[c] << " of " << n;
  }
}
template void expect_gradient(const std::vector<float>&, const Function&, const std::vector<double>&, double,
                              int64_t);
template void expect_gradient(const std::vector<double>&, const Function&, const std::vector<double>&, double,
                              int64_t);

void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    EXPECT_STREQ(name(error.code()), name(code));
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << "the message is: " << error.what();
    return;
  }
  ADD_FAILURE() << "expected an Error with \"" << part << "\", nothing was thrown";
}

std::vector<int64_t> sizes(int64_t tile) {
  std::vector<int64_t> result{0, 1, 13, tile - 1, tile, tile + 1};
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

const char* name(Data data) {
  switch (data) {
    case Data::Normal:
      return "normal";
    case Data::Huge:
      return "huge";
    case Data::Tiny:
      return "tiny";
    case Data::Equal:
      return "equal";
  }
  return "unknown";
}

std::vector<float> normal(int64_t n, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> distribution;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = static_cast<float>(distribution(engine));
  return values;
}

std::vector<float> uniform(int64_t n, float low, float high, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> distribution(static_cast<double>(low), static_cast<double>(high));
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = static_cast<float>(distribution(engine));
  return values;
}

std::vector<int32_t> indices(int64_t n, int64_t below, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_int_distribution<int32_t> distribution(0, static_cast<int32_t>(below - 1));
  std::vector<int32_t> values(static_cast<size_t>(n));
  for (int32_t& v : values) v = distribution(engine);
  return values;
}

std::vector<float> make_data(Data data, int64_t n, uint64_t seed) {
  if (data == Data::Equal) return std::vector<float>(static_cast<size_t>(n), 0.7f);
  std::vector<float> values = normal(n, seed);
  const float factor = data == Data::Huge ? 1e4f : data == Data::Tiny ? 1e-30f : 1.f;
  for (float& v : values) v *= factor;
  return values;
}

}  // namespace pwdice::test
