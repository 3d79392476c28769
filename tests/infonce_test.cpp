// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/infonce.h"

#include <cmath>
#include <limits>

#include "infonce_reference.h"
#include "op_case.h"
#include "simd_targets.h"

namespace pwdice::test {
namespace {

class InfoNceOp : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, InfoNceOp, testing::ValuesIn(test_backends()), backend_name);

struct Case {
  int64_t n, d;
  std::vector<float> v1, v2, w0;
  Options options;

  Case(int64_t rows, int64_t width, Data data = Data::Normal, Options o = {})
      : n(rows), d(width), options(o) {
    v1 = make_data(data, n * d, 1);
    v2 = make_data(data, n * d, 2);
    w0 = uniform(d * d, 0.f, 1.f, 3);
  }
  template <class T>
  Result<T> expected() const {
    return infonce(Matrix<T>(n, d, v1), Matrix<T>(n, d, v2), Matrix<T>(d, d, w0), options);
  }
  InfoNce in(OpRun& op) const {
    return {op.in(v1, n, d, d + 1), op.in(v2, n, d, d + 3), op.in(w0, d, d, d + 2),
            options.metric,         options.normalise,      options.inv_tau};
  }
};

std::string describe(const Case& c) {
  return std::to_string(c.n) + " x " + std::to_string(c.d) + ", metric " +
         std::to_string(static_cast<int>(c.options.metric)) + (c.options.normalise ? ", normalised" : "");
}

void run_train(OpRun& op, const Case& c) {
  infonce_train(op.ctx, {c.in(op), op.out("loss", 1), op.out("d_v1", c.n, c.d, c.d + 1),
                         op.out("d_v2", c.n, c.d), op.out("d_w0", c.d, c.d, c.d + 4)});
}

void run_separate(OpRun& op, const Case& c, float d_loss) {
  const Vec<float> lse = op.out("lse", c.n);
  const InfoNce in = c.in(op);
  infonce_forward(op.ctx, {in, lse, op.out("loss", 1)});
  infonce_backward(op.ctx, {in, lse, op.in(d_loss), op.out("d_v1", c.n, c.d),
                            op.out("d_v2", c.n, c.d, c.d + 2), op.out("d_w0", c.d, c.d)});
}

void expect_gradients(const Outputs& got, const Result<double>& exact, const Result<float>& plain,
                      double rtol) {
  const auto expect = [&](const char* name, const std::vector<double>& want,
                          const std::vector<float>& rough) {
    SCOPED_TRACE(name);
    rtol > 0 ? expect_within(got[name], want, rtol, 2e-6) : expect_close(got[name], want, rough);
  };
  expect("d_v1", exact.d_v1.data, plain.d_v1.data);
  expect("d_v2", exact.d_v2.data, plain.d_v2.data);
  expect("d_w0", exact.d_w0.data, plain.d_w0.data);
}

class InfoNceMatch : public InfoNceOp {
 protected:
  // rtol: for scores in the hundreds, whose own rounding decides between close candidates by chance.
  void check(const Case& c, double rtol = 0) {
    SCOPED_TRACE(describe(c));
    const auto exact = c.expected<double>();
    const auto plain = c.expected<float>();
    const size_t scratch = infonce_scratch_bytes(context(), c.n, c.d);
    const Outputs fused = run(scratch, [&](OpRun& op) { run_train(op, c); });
    expect_close(fused.value("loss"), exact.loss, plain.loss);
    expect_gradients(fused, exact, plain, rtol);
    const Outputs separate = run(scratch, [&](OpRun& op) { run_separate(op, c, 1.f); });
    expect_close(separate.value("loss"), exact.loss, plain.loss);
    expect_close(separate["lse"], exact.lse, plain.lse);
    expect_gradients(separate, exact, plain, std::max(rtol, 2e-5));  // p comes from a rounded lse
  }
};
INSTANTIATE_TEST_SUITE_P(, InfoNceMatch, testing::ValuesIn(test_backends()), backend_name);

TEST_P(InfoNceMatch, ShapesAroundTheTiles) {
  for (int64_t n : {1, 2, 5, 13, 53, 54, 55, 59, 60, 61, 69, 70, 71, 108, 109, 127, 128, 129, 131, 141})
    check(Case(n, 32));
}

TEST_P(InfoNceMatch, WidthsOfTheEmbedding) {
  for (int64_t d : {8, 16, 24, 32, 40, 128}) {
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
  const Outputs got = run(infonce_scratch_bytes(context(), c.n, c.d), [&](OpRun& op) { run_train(op, c); });
  expect_within(got.value("loss"), exact.loss, 1e-6);
  expect_within(got["d_v1"], exact.d_v1.data, 2e-5);
  expect_within(got["d_v2"], exact.d_v2.data, 2e-5);
  for (int64_t k = 0; k < c.d; ++k) {
    EXPECT_EQ(got["d_v1"][static_cast<size_t>(3 * c.d + k)], 0.f);
    EXPECT_EQ(got["d_v2"][static_cast<size_t>(8 * c.d + k)], 0.f);
  }
}

TEST_P(InfoNceOp, RejectsWhatItCannotDo) {
  const auto train = [&](int64_t n, int64_t d, float inv_tau) {
    const Case c(n, d, Data::Normal, {ScoreMetric::Gram, true, inv_tau});
    run(size_t{1} << 20, [&](OpRun& op) { run_train(op, c); });
  };
  expect_error(ErrorCode::InvalidArgument, "infonce_train: the batch has 0 pairs",
               [&] { train(0, 32, 1.f); });
  expect_error(ErrorCode::InvalidArgument, "width 12, expected a multiple of 8 up to 128",
               [&] { train(4, 12, 1.f); });
  expect_error(ErrorCode::InvalidArgument, "width 136", [&] { train(4, 136, 1.f); });
  expect_error(ErrorCode::InvalidArgument, "inv_tau is 0", [&] { train(4, 8, 0.f); });
  expect_error(ErrorCode::InvalidArgument, "inv_tau is nan", [&] { train(4, 8, NAN); });
}

TEST_P(InfoNceOp, NamesAValueThatIsNotFinite) {
  if (GetParam() != Backend::Cpu) return;  // a GPU is not read back; there the guard of adam protects
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Case c(26, 16);
    c.v2[5 * 16 + 2] = bad;
    expect_error(ErrorCode::NotFinite, "in row 5, column 2", [&] {
      run(infonce_scratch_bytes(context(), c.n, c.d), [&](OpRun& op) { run_train(op, c); });
    });
    expect_error(ErrorCode::NotFinite, "infonce_forward: v2 is", [&] {
      run(infonce_scratch_bytes(context(), c.n, c.d), [&](OpRun& op) { run_separate(op, c, 1.f); });
    });
  }
}

// Finite embeddings whose own scores, and theirs alone, are beyond float.
TEST_P(InfoNceOp, AScoreThatOverflowsIsNotLost) {
  Case c(8, 8, Data::Normal, {ScoreMetric::Identity, false, 1.f});
  for (size_t i = 0; i < c.v1.size(); ++i) c.v1[i] = c.v2[i] = i % 9 == 0 ? 1e20f : 0.f;
  const auto train = [&] {
    return run(infonce_scratch_bytes(context(), c.n, c.d), [&](OpRun& op) { run_train(op, c); });
  };
  if (GetParam() == Backend::Cpu) {
    expect_error(ErrorCode::NotFinite, "infonce_train: ", [&] { train(); });
  } else {
    EXPECT_FALSE(std::isfinite(train().value("loss")));
  }
}

// -- large batches ----------------------------------------------------------------------------------------

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

TEST(InfoNceMemory, GrowsLinearlyAndStaysBelow64MiB) {
  Context ctx({.backend = Backend::Cpu, .threads = 2, .scratch_bytes = 1 << 10});
  const size_t small = infonce_scratch_bytes(ctx, 4096, 32), large = infonce_scratch_bytes(ctx, 65536, 32);
  EXPECT_LT(large, size_t{64} << 20);
  EXPECT_LT(large, 17 * small);
  EXPECT_LT(infonce_scratch_bytes(ctx, 65536, 128), size_t{256} << 20);
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

// Beyond 16384 rows the blocks of the softmax are lower; a row of d_v1 is checked against double.
TEST_P(InfoNceLarge, TrainsWithLowBlocks) {
  const Case c(16500, 8, Data::Normal, {ScoreMetric::Identity, true, 10.f});
  Context ctx({.backend = GetParam(), .threads = 2, .scratch_bytes = kScratch});
  OpRun op(ctx, 0);
  run_train(op, c);
  const std::vector<float> d_v1 = op.finish()["d_v1"];
  const RowCheck check = row_check(c);
  for (int64_t i : {0, 9001, 16499}) {
    const double lse = check.lse(i), inv = check.inv1[static_cast<size_t>(i)];
    std::vector<double> d_z(8), z(8);
    for (int64_t j = 0; j < c.n; ++j) {
      const double g = (std::exp(10 * check.score(i, j) - lse) - (i == j)) * 10 / static_cast<double>(c.n);
      for (int64_t k = 0; k < 8; ++k) {
        d_z[static_cast<size_t>(k)] += g * check.v2(j, k) * check.inv2[static_cast<size_t>(j)];
      }
    }
    double along = 0, largest = 0;
    for (int64_t k = 0; k < 8; ++k) {
      z[static_cast<size_t>(k)] = check.v1(i, k) * inv;
      along += z[static_cast<size_t>(k)] * d_z[static_cast<size_t>(k)];
    }
    for (double v : d_z) largest = std::max(largest, std::abs(v * inv));
    for (size_t k = 0; k < 8; ++k) {
      EXPECT_NEAR(d_v1[static_cast<size_t>(i) * 8 + k], (d_z[k] - z[k] * along) * inv, 2e-5 * largest) << i;
    }
  }
}

}  // namespace
}  // namespace pwdice::test
