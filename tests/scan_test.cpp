// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "op_case.h"

namespace pwdice::test {
namespace {

class Scan : public OpTest {
 protected:
  std::vector<double> cumulative(const std::vector<float>& x) {
    const auto n = static_cast<int64_t>(x.size());
    return run(scan_scratch_bytes(n),
               [&](OpRun& op) {
                 cumulative_sum(op.ctx, {op.in(x), op.out<double>("y", n)});
               })
        .as<double>("y");
  }
};
INSTANTIATE_TEST_SUITE_P(, Scan, testing::ValuesIn(test_backends()), backend_name);

TEST_P(Scan, CumulativeSumMatchesReference) {
  for (int64_t n :
       {int64_t{0}, int64_t{1}, int64_t{13}, kScanChunk - 1, kScanChunk, kScanChunk + 1, 5 * kScanChunk}) {
    for (Data data : kAllData) {
      SCOPED_TRACE(std::string(name(data)) + ", n = " + std::to_string(n));
      const auto x = make_data(data, n);
      const auto y = cumulative(x);
      double sum = 0, magnitude = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        sum += static_cast<double>(x[i]);
        magnitude += std::abs(static_cast<double>(x[i]));
        ASSERT_NEAR(y[i], sum, 1e-12 * magnitude) << i;
      }
    }
  }
}

TEST_P(Scan, CumulativeSumOfWeightsNeverDecreases) {
  auto w = uniform(3 * kScanChunk + 11, 0.f, 1e-6f);
  for (size_t i = 0; i < w.size(); i += 3) w[i] = 0.f;
  const auto y = cumulative(w);
  EXPECT_TRUE(std::is_sorted(y.begin(), y.end()));
  for (size_t i = 3; i < w.size(); i += 3) ASSERT_EQ(y[i], y[i - 1]) << "weight 0 moved the sum at " << i;
}

TEST_P(Scan, QuantilesAreRanksOfTheSortedValues) {
  const std::vector<float> p = {0.f, 0.5f, 1.f, 0.25f, 0.999f};
  for (int64_t n : {int64_t{1}, int64_t{2}, int64_t{13}, int64_t{1000}, kScanChunk + 1}) {
    for (Data data : kAllData) {
      const auto x = make_data(data, n);
      const Outputs got = run(scan_scratch_bytes(n), [&](OpRun& op) {
        quantiles(op.ctx, {op.in(x), {p.data(), 5}, op.out("result", 5)});
      });
      auto sorted = x;
      std::sort(sorted.begin(), sorted.end());
      for (size_t k = 0; k < p.size(); ++k) {
        const auto rank =
            static_cast<size_t>(std::floor(static_cast<double>(p[k]) * static_cast<double>(n - 1)));
        EXPECT_EQ(got["result"][k], sorted[rank]) << "p = " << p[k] << ", n = " << n;
      }
    }
  }
}

TEST_P(Scan, QuantilesOfNanAreNan) {
  std::vector<float> x = normal(100);
  x[57] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> p = {0.f, 1.f};
  const Outputs got = run(scan_scratch_bytes(100), [&](OpRun& op) {
    quantiles(op.ctx, {op.in(x), {p.data(), 2}, op.out("result", 2)});
  });
  for (float v : got["result"]) EXPECT_TRUE(std::isnan(v));
}

TEST_P(Scan, RefusesWrongArguments) {
  Context& ctx = context();
  const float p[2] = {0.5f, 1.5f};
  float x[3] = {};
  double y[2] = {};
  const auto bad = ErrorCode::InvalidArgument;
  expect_error(bad, "cumulative_sum: x has 3 values, y has 2", [&] {
    cumulative_sum(ctx, {{x, 3}, {y, 2}});
  });
  expect_error(bad, "quantiles: p 1 is 1.5, expected 0 to 1", [&] {
    quantiles(ctx, {{x, 3}, {p, 2}, {x, 2}});
  });
  expect_error(bad, "quantiles: x is empty", [&] { quantiles(ctx, {{x, 0}, {p, 1}, {x, 1}}); });
  expect_error(bad, "quantiles: p has 2 values, result has 1", [&] {
    quantiles(ctx, {{x, 3}, {p, 2}, {x, 1}});
  });
}

}  // namespace
}  // namespace pwdice::test
