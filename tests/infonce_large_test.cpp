// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Large batches: what they need, and single rows against double.
#include <cmath>

#include "infonce_case.h"
#include "sanitized.h"

namespace pwdice::test {
namespace {

using Case = InfoNceProblem;

TEST(InfoNceMemory, GrowsLinearlyAndStaysBelow64MiB) {
  for (int threads : {1, 2, 16}) {
    Context ctx({.backend = Backend::Cpu, .threads = threads, .scratch_bytes = 1 << 10});
    const size_t small = infonce_scratch_bytes(ctx, 4096, 32), large = infonce_scratch_bytes(ctx, 65536, 32);
    EXPECT_LT(large, size_t{64} << 20);
    EXPECT_LT(large, 17 * small);
    EXPECT_LT(infonce_scratch_bytes(ctx, 65536, 128), size_t{192} << 20);
  }
}

// A Context made for a batch serves every smaller one too.
TEST(InfoNceMemory, FewerPairsNeedNoMore) {
  for (int threads : {1, 2, 16}) {
    Context ctx({.threads = threads, .scratch_bytes = 1 << 10});
    for (int64_t d : {8, 32, 128}) {
      size_t before = 0;
      for (int64_t n = 1; n < 70000; n += n < 3000 ? 1 : 31) {
        const size_t bytes = infonce_scratch_bytes(ctx, n, d);
        ASSERT_GE(bytes, before) << n << " x " << d << ", " << threads << " threads";
        before = bytes;
      }
    }
  }
  Context ctx({.threads = 1, .scratch_bytes = 1 << 10});
  ctx.reserve_scratch(infonce_scratch_bytes(ctx, 2721, 128));  // where one sum of d_z2 less fits
  OpRun op(ctx, 0);
  run_train(op, Case(2720, 128));
}

// lse and A_i of single rows in double: what a row needs is O(n d).
struct RowCheck {
  const Matrix<double> v1, v2;
  std::vector<double> inv1, inv2;

  double score(int64_t i, int64_t j) const {
    double s = 0;
    for (int64_t k = 0; k < v1.cols; ++k) s += v1(i, k) * v2(j, k);
    return s * inv1[static_cast<size_t>(i)] * inv2[static_cast<size_t>(j)];
  }
  double lse(int64_t i) const {
    std::vector<double> row;
    for (int64_t j = 0; j < v2.rows; ++j) row.push_back(10 * score(i, j));
    return reference::logsumexp(row);
  }
};

RowCheck row_check(const Case& c) {
  Matrix<double> v1(c.n, c.d, c.v1), v2(c.n, c.d, c.v2);
  auto inv1 = inverse_norms(v1, true), inv2 = inverse_norms(v2, true);
  return {std::move(v1), std::move(v2), std::move(inv1), std::move(inv2)};
}

class InfoNceLarge : public testing::TestWithParam<Backend> {
 protected:
  static constexpr size_t kScratch = size_t{64} << 20;
};
INSTANTIATE_TEST_SUITE_P(, InfoNceLarge, testing::ValuesIn(large_test_backends()), backend_name);

TEST_P(InfoNceLarge, RowsOf65536PairsMatchDouble) {
  const Case c(65536, 8, Data::Normal, {ScoreMetric::Identity, true, 10.f});
  Context ctx({.backend = GetParam(), .threads = 2, .scratch_bytes = kScratch});
  OpRun op(ctx, 0);
  infonce_forward(ctx, {c.in(op), op.out("lse", c.n), op.out("loss", 1)});
  const std::vector<float> lse = op.finish()["lse"];
  const RowCheck check = row_check(c);
  for (int64_t i : {0, 31999, 65535}) EXPECT_NEAR(lse[static_cast<size_t>(i)], check.lse(i), 2e-5) << i;
}

// Rows of d_v1 against double.
void expect_rows(const Case& c, const std::vector<float>& d_v1, std::initializer_list<int64_t> rows) {
  const RowCheck check = row_check(c);
  const auto width = static_cast<size_t>(c.d);
  for (int64_t i : rows) {
    const double lse = check.lse(i), inv = check.inv1[static_cast<size_t>(i)];
    std::vector<double> d_z(width), z(width);
    for (int64_t j = 0; j < c.n; ++j) {
      const double g = (std::exp(10 * check.score(i, j) - lse) - (i == j)) * 10 / static_cast<double>(c.n);
      for (int64_t k = 0; k < c.d; ++k) {
        d_z[static_cast<size_t>(k)] += g * check.v2(j, k) * check.inv2[static_cast<size_t>(j)];
      }
    }
    double along = 0, largest = 0;
    for (int64_t k = 0; k < c.d; ++k) {
      z[static_cast<size_t>(k)] = check.v1(i, k) * inv;
      along += z[static_cast<size_t>(k)] * d_z[static_cast<size_t>(k)];
    }
    for (double v : d_z) largest = std::max(largest, std::abs(v * inv));
    for (size_t k = 0; k < width; ++k) {
      EXPECT_NEAR(d_v1[static_cast<size_t>(i) * width + k], (d_z[k] - z[k] * along) * inv, 2e-5 * largest)
          << i;
    }
  }
}

// Beyond 16384 rows the blocks of the softmax are lower.
TEST_P(InfoNceLarge, TrainsWithLowBlocks) {
  const Case c(16500, 8, Data::Normal, {ScoreMetric::Identity, true, 10.f});
  Context ctx({.backend = GetParam(), .threads = 2, .scratch_bytes = kScratch});
  OpRun op(ctx, 0);
  run_train(op, c);
  expect_rows(c, op.finish()["d_v1"], {0, 9001, 16499});
}

// All gradients, of the one op as of the two, which share little but the tiles.
TEST_P(InfoNceLarge, TrainAgreesWithForwardAndBackwardWithLowBlocks) {
  const Case c(16500, 8);
  Context ctx({.backend = GetParam(), .threads = 2, .scratch_bytes = kScratch});
  OpRun fused(ctx, 0), separate(ctx, 0);
  run_train(fused, c), run_separate(separate, c, 1.f);
  const Outputs got = fused.finish(), want = separate.finish();
  EXPECT_NEAR(got.value("loss"), want.value("loss"), 1e-6 * std::abs(want.value("loss")));
  for (const char* gradient : {"d_v1", "d_v2", "d_w0"}) {
    SCOPED_TRACE(gradient);
    expect_within(got[gradient], to(want[gradient]), 2e-5);
  }
}

// Not a byte more than infonce_scratch_bytes() says, which on the CPU is below 64 MiB.
TEST_P(InfoNceLarge, Trains65536PairsInItsScratch) {
#ifdef PWDICE_SANITIZED
  constexpr int64_t kPairs = 1 << 14;
#else
  constexpr int64_t kPairs = 1 << 16;
#endif
  const Case c(kPairs, 32, Data::Normal, {ScoreMetric::Identity, true, 10.f});
  const Context small({.backend = GetParam(), .threads = 2, .scratch_bytes = 1 << 10});
  const size_t bytes = infonce_scratch_bytes(small, c.n, c.d);
  EXPECT_TRUE(bytes <= kScratch || GetParam() != Backend::Cpu) << bytes;
  Context ctx({.backend = GetParam(), .threads = 2, .scratch_bytes = bytes});
  ASSERT_EQ(ctx.scratch().capacity(), bytes);
  OpRun op(ctx, 0);
  run_train(op, c);
  expect_rows(c, op.finish()["d_v1"], {0, kPairs / 2 + 7231, kPairs - 1});
}

}  // namespace
}  // namespace pwdice::test
