// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/infonce.h"

#include <limits>

#include "infonce_case.h"
#include "simd_targets.h"

namespace pwdice::test {
namespace {

class InfoNceOp : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, InfoNceOp, testing::ValuesIn(test_backends()), backend_name);

using Case = InfoNceProblem;

// Within rtol of the largest value, or 2e-6 where plain float code has no more: of equal embeddings the gradient is zero.
void expect_gradients(const Outputs& got, const Result<double>& exact, const Result<float>& plain,
                      double rtol) {
  const auto expect = [&](const char* name, const std::vector<double>& want,
                          const std::vector<float>& rough) {
    SCOPED_TRACE(name);
    double error = 0;
    for (size_t i = 0; i < want.size(); ++i)
      error = std::max(error, std::abs(static_cast<double>(rough[i]) - want[i]));
    rtol > 0 ? expect_within(got[name], want, rtol, std::min(8 * error, 2e-6))
             : expect_close(got[name], want, rough);
  };
  expect("d_v1", exact.d_v1.data, plain.d_v1.data);
  expect("d_v2", exact.d_v2.data, plain.d_v2.data);
  expect("d_w0", exact.d_w0.data, plain.d_w0.data);
}

class InfoNceMatch : public InfoNceOp {
 protected:
  // rtol: for scores in the hundreds, whose own rounding decides between close candidates by chance.
  void check(const Case& c, double rtol = 0) {
    check_fused(c, rtol);
    SCOPED_TRACE(describe(c));
    const auto exact = c.expected<double>();
    const auto plain = c.expected<float>();
    const size_t scratch = infonce_scratch_bytes(context(), c.n, c.d);
    const Outputs separate = run(scratch, [&](OpRun& op) { run_separate(op, c, 1.f); });
    expect_close(separate.value("loss"), exact.loss, plain.loss);
    expect_close(separate["lse"], exact.lse, plain.lse);
    expect_gradients(separate, exact, plain, std::max(rtol, 2e-5));  // p comes from a rounded lse
  }
  void check_fused(const Case& c, double rtol = 0) {
    SCOPED_TRACE(describe(c));
    const auto exact = c.expected<double>();
    const auto plain = c.expected<float>();
    const size_t scratch = infonce_scratch_bytes(context(), c.n, c.d);
    const Outputs fused = run(scratch, [&](OpRun& op) { run_train(op, c); });
    expect_close(fused.value("loss"), exact.loss, plain.loss);
    expect_gradients(fused, exact, plain, rtol);
  }
};
INSTANTIATE_TEST_SUITE_P(, InfoNceMatch, testing::ValuesIn(test_backends()), backend_name);

TEST_P(InfoNceMatch, ShapesAroundTheTiles) {
  // Two pairs at the scores of 32 x 32 weights are told apart but for 1e-19, of which a rounded lse keeps no digit.
  check_fused(Case(2, 32));
  check(Case(2, 32, Data::Normal, {ScoreMetric::SoftplusGram, true, 0.125f}));
  for (int64_t n : {1, 5, 13, 53, 54, 55, 59, 60, 61, 69, 70, 71, 108, 109, 127, 128, 129, 131, 141})
    check(Case(n, 32));
}

TEST_P(InfoNceMatch, WidthsOfTheEmbedding) {
  for (int64_t d = 8; d <= 128; d += 8) {
    check(Case(61, d, Data::Normal, {ScoreMetric::SoftplusGram, true, 4.f / static_cast<float>(d)}));
  }
}

TEST_P(InfoNceMatch, EveryMetricWithAndWithoutNormalisation) {
  for (ScoreMetric metric :
       {ScoreMetric::SoftplusGram, ScoreMetric::Gram, ScoreMetric::Plain, ScoreMetric::Identity}) {
    for (bool normalise : {true, false}) check(Case(37, 16, Data::Normal, {metric, normalise, 0.1f}));
  }
}

TEST_P(InfoNceMatch, HugeTinyAndEqualEmbeddings) {
  for (Data data : {Data::Huge, Data::Tiny, Data::Equal}) check(Case(53, 16, data));
}

// Scores of zero all over, or along one direction.
TEST_P(InfoNceMatch, ZeroMetric) {
  for (ScoreMetric metric : {ScoreMetric::Gram, ScoreMetric::Plain}) {
    Case c(29, 16, Data::Normal, {metric, true, 0.5f});
    std::fill_n(c.w0.begin() + 3 * c.d, c.d, 0.f);
    check(c);
    std::fill(c.w0.begin(), c.w0.end(), 0.f);
    check(c);
  }
}

// The op calculates without subnormal numbers; its caller goes on with them.
TEST_P(InfoNceOp, LeavesTheCallersNumbersAlone) {
  const Case c(61, 16);
  const size_t scratch = infonce_scratch_bytes(context(), c.n, c.d);
  volatile float smallest = std::numeric_limits<float>::min();
  run(scratch, [&](OpRun& op) { run_train(op, c); });
  EXPECT_GT(smallest * 0.5f, 0.f);
  run(scratch, [&](OpRun& op) { run_separate(op, c, 1.f); });
  EXPECT_GT(smallest * 0.5f, 0.f);
}

TEST_P(InfoNceMatch, EmbeddingsFarFromOne) {
  for (const auto& [size1, size2] : {std::pair(1.f, 1e-30f), {1e27f, 1e-27f}, {1e-29f, 1.f}}) {
    Case c(75, 16, Data::Normal, {ScoreMetric::Identity, false, 1.f});
    for (float& v : c.v1) v *= size1;
    for (float& v : c.v2) v *= size2;
    check(c, 2e-5);
  }
}

TEST_P(InfoNceMatch, SharpScores) {
  check(Case(70, 32, Data::Normal, {ScoreMetric::SoftplusGram, true, 10.f}), 2e-3);
  check(Case(70, 32, Data::Huge, {ScoreMetric::Identity, true, 100.f}), 2e-4);
}

// Three levels of scores, from one third of the columns to the next.
Case rising(int64_t n, float middle, float top) {
  Case c(n, 16, Data::Normal, {ScoreMetric::Identity, false, 1.f});
  for (float& v : c.v1) v *= 0.1f;
  for (float& v : c.v2) v *= 0.1f;
  for (int64_t i = 0; i < n; ++i) {
    c.v1[static_cast<size_t>(i * c.d)] = 1.f;
    c.v2[static_cast<size_t>(i * c.d)] = i < 96 * n / 288 ? 0.f : i < 192 * n / 288 ? middle : top;
  }
  return c;
}

// A running maximum that is raised late, and values of before that still count then (by 6 bits less) or do not.
TEST_P(InfoNceMatch, ScoresThatRiseFromColumnToColumn) {
  for (const float top : {45.7f, 150.f}) check(rising(288, 41.6f, top), 2e-5);
}

TEST_P(InfoNceMatch, SeveralSections) { check(Case(230, 16)); }

// Chunks of columns on the CPU: 72, 144 or 288 of them, as wide as its vectors allow.
class InfoNceChunks : public InfoNceMatch {};
INSTANTIATE_TEST_SUITE_P(, InfoNceChunks, testing::Values(Backend::Cpu), backend_name);

TEST_P(InfoNceChunks, Edges) {
  for (int64_t n : {71, 72, 73, 143, 144, 145, 287, 288, 289, 600}) check(Case(n, 32));
}

// The second level is 31 bits above the first, short of raising the base; the third raises it, and the second still
// counts then (3 bits below, or 6) or does not.
TEST_P(InfoNceChunks, ScoresThatRiseFromChunkToChunk) {
  for (const float top : {23.6f, 25.7f, 150.f}) check(rising(864, 21.4f, top), 2e-5);
}

TEST(InfoNceCpu, EveryTargetMatchesReference) {
  on_every_target([] {
    Context ctx({.threads = 2});
    for (const Case& c : {Case(300, 24), rising(288, 41.6f, 45.7f), rising(864, 21.4f, 25.7f)}) {
      const auto exact = c.expected<double>();
      const auto plain = c.expected<float>();
      for (const bool fused : {true, false}) {
        OpRun op(ctx, 0);
        fused ? run_train(op, c) : run_separate(op, c, 1.f);
        const Outputs got = op.finish();
        expect_close(got.value("loss"), exact.loss, plain.loss);
        expect_gradients(got, exact, plain, 2e-5);
      }
    }
  });
}

// Fewer sections than threads, and memory for as many blocks as there can be at one time; who takes them is open.
TEST(InfoNceCpu, ManyThreads) {
  for (const int64_t n : {90, 1000}) {
    const Case c(n, 16);
    const auto scratch = [&](const Context& ctx) { return infonce_scratch_bytes(ctx, c.n, c.d); };
    expect_same_bits_on_many_threads(scratch, [&](OpRun& op) { run_train(op, c); });
    expect_same_bits_on_many_threads(scratch, [&](OpRun& op) { run_separate(op, c, 1.f); });
  }
}

// Pairs so far apart that sums over blocks of rows come near the smallest numbers.
TEST(InfoNceCpu, ManyThreadsWithSharpScores) {
  Case c(900, 64, Data::Normal, {ScoreMetric::Identity, true, 110.f});
  c.v2 = c.v1;
  expect_same_bits_on_many_threads([&](const Context& ctx) { return infonce_scratch_bytes(ctx, c.n, c.d); },
                                   [&](OpRun& op) { run_train(op, c); });
}

TEST_P(InfoNceOp, BackwardScalesByTheGradientOfTheLoss) {
  const Case c(29, 16);
  const auto exact = c.expected<double>();
  const Outputs got =
      run(infonce_scratch_bytes(context(), c.n, c.d), [&](OpRun& op) { run_separate(op, c, -3.f); });
  std::vector<double> want = exact.d_v2.data;
  for (double& v : want) v *= -3;
  expect_within(got["d_v2"], want, 2e-5);
}

TEST_P(InfoNceOp, GradientsAgreeWithCentralDifferences) {
  const Case c(7, 8);
  const Outputs got = run(infonce_scratch_bytes(context(), c.n, c.d), [&](OpRun& op) { run_train(op, c); });
  const auto loss = [&](const std::vector<double>& v1, const std::vector<double>& v2,
                        const std::vector<double>& w0) {
    return infonce(Matrix<double>(c.n, c.d, v1), Matrix<double>(c.n, c.d, v2), Matrix<double>(c.d, c.d, w0),
                   c.options)
        .loss;
  };
  const auto v1 = to(c.v1), v2 = to(c.v2), w0 = to(c.w0);
  expect_gradient(
      got["d_v1"], [&](const auto& x) { return loss(x, v2, w0); }, v1);
  expect_gradient(
      got["d_v2"], [&](const auto& x) { return loss(v1, x, w0); }, v2);
  expect_gradient(
      got["d_w0"], [&](const auto& x) { return loss(v1, v2, x); }, w0);
}

TEST_P(InfoNceOp, ZeroNormRowIsAZeroEmbeddingWithoutGradient) {
  Case c(19, 16);
  std::fill_n(c.v1.begin() + 3 * c.d, c.d, 0.f);
  std::fill_n(c.v2.begin() + 8 * c.d, c.d, 0.f);
  const auto exact = c.expected<double>();
  for (const bool fused : {true, false}) {
    const Outputs got = run(infonce_scratch_bytes(context(), c.n, c.d),
                            [&](OpRun& op) { fused ? run_train(op, c) : run_separate(op, c, 1.f); });
    expect_within(got.value("loss"), exact.loss, 1e-6);
    expect_within(got["d_v1"], exact.d_v1.data, 2e-5);
    expect_within(got["d_v2"], exact.d_v2.data, 2e-5);
    for (int64_t k = 0; k < c.d; ++k) {
      EXPECT_EQ(got["d_v1"][static_cast<size_t>(3 * c.d + k)], 0.f);
      EXPECT_EQ(got["d_v2"][static_cast<size_t>(8 * c.d + k)], 0.f);
    }
  }
}

// 17 blocks of 128 rows: fewer splits of the columns than smaller batches have (kernels/cuda/infonce_sweep.h).
TEST_P(InfoNceOp, FewerSplitsOfALargeBatch) {
  const Case c(2049, 8, Data::Normal, {ScoreMetric::Identity, true, 10.f});
  OpRun op(context(), 0);
  run_train(op, c);
  const Outputs got = op.finish();
  const auto exact = c.expected<double>();
  expect_within(got.value("loss"), exact.loss, 1e-6);
  expect_within(got["d_v1"], exact.d_v1.data, 2e-5);
  expect_within(got["d_v2"], exact.d_v2.data, 2e-5);
}

}  // namespace
}  // namespace pwdice::test
