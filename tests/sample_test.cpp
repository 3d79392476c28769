// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "op_case.h"

namespace pwdice::test {
namespace {

constexpr RandomStream kStream{.seed = 7, .stream = 0x1234567890abcdef};

class Sample : public OpTest {
 protected:
  std::vector<int32_t> uniform_draws(uint64_t step, int64_t population, int64_t n) {
    return run(0,
               [&](OpRun& op) {
                 sample_uniform(op.ctx, {kStream, op.in(std::vector<uint64_t>{step}), population,
                                         op.out<int32_t>("index", n)});
               })
        .as<int32_t>("index");
  }
  std::vector<int32_t> shuffled_draws(uint64_t step, int64_t population, int64_t n) {
    return run(0,
               [&](OpRun& op) {
                 sample_shuffled(op.ctx, {kStream, op.in(std::vector<uint64_t>{step}), population,
                                          op.out<int32_t>("index", n)});
               })
        .as<int32_t>("index");
  }
  std::vector<int32_t> weighted_draws(uint64_t step, const std::vector<double>& cumulative, int64_t n) {
    return run(0,
               [&](OpRun& op) {
                 sample_weighted(op.ctx, {kStream, op.in(std::vector<uint64_t>{step}), op.in(cumulative),
                                          op.out<int32_t>("index", n)});
               })
        .as<int32_t>("index");
  }
};
INSTANTIATE_TEST_SUITE_P(, Sample, testing::ValuesIn(test_backends()), backend_name);

// 99.9 % of all chi2 values with k degrees of freedom lie below this (Wilson and Hilferty).
double chi2_limit(double k) { return k * std::pow(1 - 2 / (9 * k) + 3.09 * std::sqrt(2 / (9 * k)), 3); }

double chi2(const std::vector<int64_t>& counts, double expected) {
  double total = 0;
  for (int64_t c : counts) total += std::pow(static_cast<double>(c) - expected, 2) / expected;
  return total;
}

// The contract: both backends give these bits.
TEST_P(Sample, DrawsAreTheFunctionsOfPhilox) {
  for (uint64_t step : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
    for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{13}, int64_t{2047}, int64_t{2049}}) {
      const auto weights = std::vector<double>{0.5, 0.5, 2, 7, 7};
      const auto index = uniform_draws(step, 1000003, n), shuffled = shuffled_draws(step, 5, n);
      const auto weighted = weighted_draws(step, weights, n);
      const auto real = run(0, [&](OpRun& op) {
        sample_real(op.ctx, {kStream, op.in(std::vector<uint64_t>{step}), op.out("value", n)});
      })["value"];
      for (int64_t i = 0; i < n; ++i) {
        const auto k = static_cast<size_t>(i);
        const uint64_t count = step * static_cast<uint64_t>(n) + k;
        ASSERT_EQ(index[k], draw_uniform(kStream, step, k, 1000003));
        ASSERT_EQ(shuffled[k], static_cast<int32_t>(pass_order(kStream, count / 5, 5)(count % 5)));
        ASSERT_EQ(weighted[k], draw_weighted(kStream, step, k, weights.data(), 5));
        ASSERT_EQ(real[k], draw_real(kStream, step, k));
      }
    }
  }
}

TEST_P(Sample, UniformCoversThePopulationEvenly) {
  constexpr int64_t kPopulation = 97, kDraws = 97 * 200;
  std::vector<int64_t> counts(kPopulation);
  for (int32_t i : uniform_draws(3, kPopulation, kDraws)) ++counts.at(static_cast<size_t>(i));
  EXPECT_LT(chi2(counts, 200), chi2_limit(kPopulation - 1));
  EXPECT_EQ(uniform_draws(0, 1, 5), std::vector<int32_t>(5, 0));
}

TEST_P(Sample, ShuffledPassesVisitEveryItemOnceAndDifferInOrder) {
  constexpr int64_t kPopulation = 1009, kBatch = 64;
  std::vector<int32_t> draws;
  for (uint64_t step = 0; draws.size() < 2 * kPopulation; ++step) {
    const auto batch = shuffled_draws(step, kPopulation, kBatch);
    draws.insert(draws.end(), batch.begin(), batch.end());
  }
  std::vector<int32_t> first(draws.begin(), draws.begin() + kPopulation);
  std::vector<int32_t> second(draws.begin() + kPopulation, draws.begin() + 2 * kPopulation);
  EXPECT_NE(first, second);
  std::vector<int32_t> all(kPopulation);
  std::iota(all.begin(), all.end(), 0);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, all);
  EXPECT_EQ(second, all);
}

TEST_P(Sample, WeightedFollowsWeightsAndSkipsZeros) {
  const std::vector<double> weights = {0, 1, 0, 3, 0, 0, 4, 0};
  std::vector<double> cumulative(weights.size());
  std::partial_sum(weights.begin(), weights.end(), cumulative.begin());
  constexpr int64_t kDraws = 8000;
  std::vector<int64_t> counts(weights.size());
  for (int32_t i : weighted_draws(11, cumulative, kDraws)) ++counts.at(static_cast<size_t>(i));
  double statistic = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) {
      EXPECT_EQ(counts[i], 0) << i;
    } else {
      const double expected = kDraws * weights[i] / 8;
      statistic += std::pow(static_cast<double>(counts[i]) - expected, 2) / expected;
    }
  }
  EXPECT_LT(statistic, chi2_limit(2));
  EXPECT_EQ(weighted_draws(0, {1e-300}, 3), std::vector<int32_t>(3, 0));
}

// The search must find what std::upper_bound finds, for every length it can halve.
TEST_P(Sample, WeightedIsTheFirstBeyondItsTarget) {
  for (int64_t population = 1; population <= 40; ++population) {
    std::vector<double> cumulative(static_cast<size_t>(population));
    for (size_t i = 0; i < cumulative.size(); ++i) cumulative[i] = static_cast<double>(i / 3 + 1);
    const auto draws = weighted_draws(3, cumulative, 300);
    for (size_t i = 0; i < draws.size(); ++i) {
      const Philox bits = kStream.at(3, i);
      const double u = static_cast<double>(((uint64_t{bits.v[0]} << 32) | bits.v[1]) >> 11) * 0x1p-53;
      const auto want = std::upper_bound(cumulative.begin(), cumulative.end(), u * cumulative.back());
      ASSERT_EQ(draws[i], want - cumulative.begin()) << population << " items, draw " << i;
    }
  }
}

TEST_P(Sample, RealsAreUniformBelowOne) {
  constexpr int64_t kDraws = 20000, kBins = 50;
  const auto values = run(0, [&](OpRun& op) {
    sample_real(op.ctx, {kStream, op.in(std::vector<uint64_t>{5}), op.out("value", kDraws)});
  })["value"];
  std::vector<int64_t> counts(kBins);
  for (float v : values) {
    ASSERT_TRUE(v >= 0.f && v < 1.f);
    ++counts[static_cast<size_t>(v * static_cast<float>(kBins))];
  }
  EXPECT_LT(chi2(counts, static_cast<double>(kDraws) / kBins), chi2_limit(kBins - 1));
}

TEST_P(Sample, CounterAdvancesByOneAndCarries) {
  const Outputs got = run(0, [](OpRun& op) {
    const Vec<uint64_t> step = op.in_out("step", std::vector<uint64_t>{0xffffffffull});
    advance_counter(op.ctx, step);
    advance_counter(op.ctx, step);
  });
  EXPECT_EQ(got.as<uint64_t>("step"), std::vector<uint64_t>{0x100000001ull});
}

TEST_P(Sample, RefusesWrongArguments) {
  Context& ctx = context();
  uint64_t step[2] = {};
  int32_t index = 0;
  float value = 0;
  double weight = 0;
  const Vec<uint64_t> one{step, 1}, two{step, 2};
  const auto bad = ErrorCode::InvalidArgument;
  expect_error(bad, "sample_uniform: the population is 0, expected 1 to 2147483647", [&] {
    sample_uniform(ctx, {kStream, one, 0, {&index, 1}});
  });
  expect_error(bad, "sample_shuffled: the population is 4294967296", [&] {
    sample_shuffled(ctx, {kStream, one, int64_t{1} << 32, {&index, 1}});
  });
  expect_error(bad, "sample_weighted: the population is 0", [&] {
    sample_weighted(ctx, {kStream, one, {&weight, 0}, {&index, 1}});
  });
  expect_error(bad, "sample_real: step has 2 values, expected 1", [&] {
    sample_real(ctx, {kStream, two, {&value, 1}});
  });
  expect_error(bad, "advance_counter: step has 2 values", [&] { advance_counter(ctx, two); });
  if (GetParam() == Backend::Cpu) {
    expect_error(bad, "sample_weighted: the weights sum to 0, expected a positive number", [&] {
      sample_weighted(ctx, {kStream, one, {&weight, 1}, {&index, 1}});
    });
  }
}

}  // namespace
}  // namespace pwdice::test
