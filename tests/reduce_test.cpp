// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/reduce.h"

#include <cmath>
#include <limits>

#include "op_case.h"
#include "reference.h"

namespace pwdice::test {
namespace {

class Reduction : public OpTest {
 protected:
  using Op = void (*)(Context&, const Reduce&);
  float reduce(Op op, const std::vector<float>& x) {
    const auto n = static_cast<int64_t>(x.size());
    return run(reduce_scratch_bytes(n),
               [&](OpRun& r) {
                 op(r.ctx, {r.in(x), r.out("result", 1)});
               })
        .value("result");
  }
};
INSTANTIATE_TEST_SUITE_P(, Reduction, testing::ValuesIn(test_backends()), backend_name);

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
T norm(const std::vector<T>& x) {
  return std::sqrt(reference::dot(x, x));
}

std::vector<int64_t> lengths() {
  std::vector<int64_t> result = sizes(kReduceChunk);
  for (int64_t n : {int64_t{7}, int64_t{8}, int64_t{9}, int64_t{33}, 3 * kReduceChunk + 17})
    result.push_back(n);
  return result;
}

TEST_P(Reduction, MatchesReferenceOverSizesAndData) {
  for (int64_t n : lengths()) {
    for (Data data : kAllData) {
      SCOPED_TRACE(std::string(name(data)) + ", n = " + std::to_string(n));
      const auto x = make_data(data, n);
      const auto exact = to<double>(x);
      expect_close(reduce(reduce_sum, x), reference::sum(exact), reference::sum(x));
      expect_close(reduce(reduce_norm, x), norm(exact), norm(x));
      expect_close(reduce(reduce_logsumexp, x), reference::logsumexp(exact), reference::logsumexp(x));
      if (n == 0) continue;
      const double mean = reference::sum(exact) / static_cast<double>(n);
      expect_close(reduce(reduce_mean, x), mean, reference::sum(x) / static_cast<float>(n));
      EXPECT_EQ(reduce(reduce_max, x), *std::max_element(x.begin(), x.end()));
    }
  }
}

TEST_P(Reduction, EmptySumIsZeroAndEmptyMaximumMinusInfinity) {
  EXPECT_EQ(reduce(reduce_sum, {}), 0.f);
  EXPECT_EQ(reduce(reduce_norm, {}), 0.f);
  EXPECT_EQ(reduce(reduce_max, {}), -kInf);
  EXPECT_EQ(reduce(reduce_logsumexp, {}), -kInf);
}

TEST_P(Reduction, NanWinsWhereverItStands) {
  for (int64_t n : {int64_t{1}, int64_t{9}, kReduceChunk + 3}) {
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      SCOPED_TRACE(std::to_string(at) + " of " + std::to_string(n));
      auto x = normal(n);
      x[static_cast<size_t>(at)] = kNan;
      for (Op op : {reduce_sum, reduce_mean, reduce_max, reduce_logsumexp, reduce_norm}) {
        EXPECT_TRUE(std::isnan(reduce(op, x)));
      }
    }
  }
}

TEST_P(Reduction, NanBeatsInfinity) {
  EXPECT_TRUE(std::isnan(reduce(reduce_max, {kInf, kNan, 1.f})));
  EXPECT_TRUE(std::isnan(reduce(reduce_logsumexp, {kNan, kInf, 1.f})));
}

TEST_P(Reduction, LogsumexpOfInfinities) {
  EXPECT_EQ(reduce(reduce_logsumexp, {-kInf, -kInf}), -kInf);
  EXPECT_EQ(reduce(reduce_logsumexp, {kInf, 0.f}), kInf);
  EXPECT_EQ(reduce(reduce_logsumexp, {-kInf, 3.f}), 3.f);
  std::vector<float> chunked(static_cast<size_t>(kReduceChunk), -kInf);  // a whole chunk without weight
  chunked.push_back(3.f);
  EXPECT_EQ(reduce(reduce_logsumexp, chunked), 3.f);
}

TEST_P(Reduction, NormNeitherOverflowsNorVanishes) {
  if (GetParam() == Backend::Cpu) {
    expect_ulps({reduce(reduce_norm, std::vector<float>(100, 1e30f))}, {1e31}, 2);
    expect_ulps({reduce(reduce_norm, std::vector<float>(100, 1e-30f))}, {1e-29}, 2);
  }
  expect_ulps({reduce(reduce_norm, std::vector<float>(100, 1e10f))}, {1e11}, 2);
}

// A million summands of one sign: plain float code loses four digits, chunks merged in double do not.
TEST_P(Reduction, LongSumsKeepTheirDigits) {
  const std::vector<float> x(1000003, 0.1f);
  expect_ulps({reduce(reduce_sum, x)}, {static_cast<double>(0.1f) * 1000003}, 40);
}

TEST_P(Reduction, Dot) {
  for (int64_t n : lengths()) {
    for (Data data : kAllData) {
      SCOPED_TRACE(std::string(name(data)) + ", n = " + std::to_string(n));
      const auto a = make_data(data, n, 1), b = make_data(data, n, 2);
      const Outputs got = run(reduce_scratch_bytes(n), [&](OpRun& op) {
        dot(op.ctx, {op.in(a), op.in(b), op.out("result", 1)});
      });
      expect_close(got.value("result"), reference::dot(to<double>(a), to<double>(b)), reference::dot(a, b));
    }
  }
}

template <class T>
std::vector<T> row_sums(const reference::Matrix<T>& x) {
  std::vector<T> y(static_cast<size_t>(x.rows));
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) y[static_cast<size_t>(i)] += x(i, j);
  }
  return y;
}

TEST_P(Reduction, RowsAndColumns) {
  for (int64_t rows : sizes(kReduceRows)) {
    for (int64_t cols : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{8}, int64_t{17}, int64_t{256}}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      const auto x = normal(rows * cols);
      const reference::Matrix<double> exact(rows, cols, x);
      const reference::Matrix<float> plain(rows, cols, x);
      const Outputs got = run(column_reduce_scratch_bytes(rows, cols), [&](OpRun& op) {
        row_sum(op.ctx, {op.in(x, rows, cols, cols + 3), op.out("rows", rows)});
        column_sum(op.ctx, {op.in(x, rows, cols, cols + 3), op.out("columns", cols)});
      });
      expect_close(got["rows"], row_sums(exact), row_sums(plain));
      expect_close(got["columns"], row_sums(transpose(exact)), row_sums(transpose(plain)));
    }
  }
}

// More chunks of rows than the grid of a GPU has blocks for: they stride.
TEST_P(Reduction, ColumnsOfManyRows) {
  const int64_t rows = 1030 * kReduceRows + 3;
  const auto x = normal(rows);
  OpRun op(context(), 0);
  const Mat<const float> in = op.in(x, rows, 1);
  column_sum(op.ctx, {in, op.out("sum", 1)});
  column_moments(op.ctx, {in, false, op.out("mean", 1), op.out("deviation", 1)});
  const Outputs got = op.finish();
  const double n = static_cast<double>(rows);
  double sum = 0, squares = 0;
  for (float v : x) sum += static_cast<double>(v);
  for (float v : x) squares += (static_cast<double>(v) - sum / n) * (static_cast<double>(v) - sum / n);
  expect_within(got.value("sum"), sum, 1e-5, 0.02);  // terms of 1, chunks of 512 of them
  expect_within(got.value("mean"), sum / n, 1e-6);
  expect_within(got.value("deviation"), std::sqrt(squares / n), 1e-6);
}

TEST_P(Reduction, AllFiniteSeesOneBadValue) {
  for (int64_t n : {int64_t{1}, int64_t{8}, int64_t{13}, 2 * kReduceChunk + 1}) {
    auto flag = [&](const std::vector<float>& x) {
      return run(reduce_scratch_bytes(n),
                 [&](OpRun& op) {
                   all_finite(op.ctx, {op.in(x), op.out("flag", 1)});
                 })
          .value("flag");
    };
    auto x = make_data(Data::Huge, n);
    EXPECT_EQ(flag(x), 1.f);
    for (float bad : {kNan, kInf, -kInf}) {
      for (int64_t at : {int64_t{0}, n - 1}) {
        auto broken = x;
        broken[static_cast<size_t>(at)] = bad;
        EXPECT_EQ(flag(broken), 0.f) << bad << " at " << at << " of " << n;
      }
    }
  }
  const Outputs empty = run(0, [](OpRun& op) {
    all_finite(op.ctx, {op.in(std::vector<float>{}), op.out("flag", 1)});
  });
  EXPECT_EQ(empty.value("flag"), 1.f);
}

TEST_P(Reduction, ColumnMoments) {
  for (int64_t rows : {int64_t{2}, int64_t{13}, kReduceRows - 1, kReduceRows + 1, 3 * kReduceRows}) {
    for (bool unbiased : {false, true}) {
      const int64_t cols = 5;
      auto x = normal(rows * cols);
      for (int64_t i = 0; i < rows; ++i) {
        x[static_cast<size_t>(i * cols + 1)] = 2.5f;      // constant: deviation exactly 0
        x[static_cast<size_t>(i * cols + 2)] += 10000.f;  // far from zero
      }
      std::vector<double> mean, deviation;
      for (int64_t j = 0; j < cols; ++j) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < rows; ++i) sum += static_cast<double>(x[static_cast<size_t>(i * cols + j)]);
        mean.push_back(sum / static_cast<double>(rows));
        for (int64_t i = 0; i < rows; ++i) {
          squares += std::pow(static_cast<double>(x[static_cast<size_t>(i * cols + j)]) - mean.back(), 2);
        }
        deviation.push_back(std::sqrt(squares / static_cast<double>(unbiased ? rows - 1 : rows)));
      }
      const Outputs got = run(column_reduce_scratch_bytes(rows, cols), [&](OpRun& op) {
        column_moments(op.ctx, {op.in(x, rows, cols, cols + 1), unbiased, op.out("mean", cols),
                                op.out("deviation", cols)});
      });
      expect_ulps(got["mean"], mean, 1);
      expect_ulps(got["deviation"], deviation, 1);
      EXPECT_EQ(got["deviation"][1], 0.f);
    }
  }
}

TEST_P(Reduction, RefusesWrongShapes) {
  Context& ctx = context();
  float unused[4] = {};
  const Vec<float> one{unused, 1}, two{unused, 2}, none{unused, 0};
  const Mat<float> m{unused, 1, 2};
  const auto bad = ErrorCode::InvalidArgument;
  expect_error(bad, "reduce_sum: result has 2 values, expected 1", [&] { reduce_sum(ctx, {one, two}); });
  expect_error(bad, "reduce_mean: x is empty", [&] { reduce_mean(ctx, {none, one}); });
  expect_error(bad, "dot: a has 1 values, b has 2", [&] { dot(ctx, {one, two, one}); });
  expect_error(bad, "row_sum: y has 2 values, x has 1 rows", [&] { row_sum(ctx, {m, two}); });
  expect_error(bad, "column_sum: y has 1 values, x has 2 columns", [&] { column_sum(ctx, {m, one}); });
  expect_error(bad, "all_finite: flag has 2 values", [&] { all_finite(ctx, {one, two}); });
  expect_error(bad, "column_moments: x has 1 rows, expected at least 2", [&] {
    column_moments(ctx, {m, true, two, two});
  });
}

TEST_P(Reduction, SaysHowMuchScratchIsMissing) {
  Context small({.backend = GetParam(), .threads = 1, .scratch_bytes = 256});
  std::vector<float> x(static_cast<size_t>(100 * kReduceChunk));
  OpRun op(small, 0);
  const Vec<const float> in = op.in(x);
  const Vec<float> result = op.out("result", 1);
  expect_error(ErrorCode::OutOfMemory, "bytes of scratch", [&] { reduce_sum(small, {in, result}); });
}

}  // namespace
}  // namespace pwdice::test
