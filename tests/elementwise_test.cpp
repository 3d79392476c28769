// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/elementwise.h"

#include <cmath>
#include <limits>

#include "../kernels/memory.h"
#include "op_case.h"
#include "reference.h"

namespace pwdice::test {
namespace {

class Elementwise : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, Elementwise, testing::ValuesIn(test_backends()), backend_name);

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kChunk = 32768;  // of the CPU backend; a GPU block is smaller and divides it

struct UnaryCase {
  Unary f;
  const char* name;
  double (*want)(double);
  double ulps;
};

const UnaryCase kUnary[] = {
    {Unary::Negate, "negate", [](double x) { return -x; }, 0},
    {Unary::Square, "square", [](double x) { return x * x; }, 1},
    {Unary::Sqrt, "sqrt", [](double x) { return std::sqrt(x); }, 1},
    {Unary::Reciprocal, "reciprocal", [](double x) { return 1 / x; }, 1},
    {Unary::Exp, "exp", [](double x) { return std::exp(x); }, 3},
    {Unary::Log, "log", [](double x) { return std::log(x); }, 3},
    {Unary::Tanh, "tanh", [](double x) { return std::tanh(x); }, 4},
    {Unary::Relu, "relu", [](double x) { return x < 0 ? 0 : x; }, 0},
    {Unary::Step, "step", [](double x) { return std::isnan(x) ? x
                                                : x > 0       ? 1.0
                                                              : 0.0; }, 0},
    {Unary::Softplus, "softplus", [](double x) { return reference::softplus(x); }, 4},
    {Unary::Sigmoid, "sigmoid", [](double x) { return reference::sigmoid(x); }, 4},
};

std::vector<double> apply(const UnaryCase& c, const std::vector<float>& x) {
  std::vector<double> want(x.size());
  for (size_t i = 0; i < x.size(); ++i) want[i] = c.want(static_cast<double>(x[i]));
  return want;
}

TEST_P(Elementwise, UnaryMatchesReference) {
  for (const UnaryCase& c : kUnary) {
    for (int64_t n : sizes(64)) {
      for (Data data : kAllData) {
        SCOPED_TRACE(std::string(c.name) + ", n = " + std::to_string(n) + ", " + name(data));
        const auto x = make_data(data, n);
        const Outputs got = run(0, [&](OpRun& op) { unary_map(op.ctx, {c.f, op.in(x), op.out("y", n)}); });
        expect_ulps(got["y"], apply(c, x), c.ulps);
      }
    }
  }
}

TEST_P(Elementwise, UnaryAtTheEdges) {
  const std::vector<float> x = {0.f, kInf, -kInf, kNan, 1.f, -1.f, 1e-20f, 88.f, 1e10f, -1e10f, 1e4f, -1e4f};
  for (const UnaryCase& c : kUnary) {
    SCOPED_TRACE(c.name);
    const Outputs got = run(0, [&](OpRun& op) {
      unary_map(op.ctx, {c.f, op.in(x), op.out("y", static_cast<int64_t>(x.size()))});
    });
    expect_ulps(got["y"], apply(c, x), c.ulps);
  }
}

TEST_P(Elementwise, UnaryInPlaceOverSeveralChunks) {
  for (int64_t n : {kChunk - 1, kChunk + 1, 3 * kChunk + 5}) {
    const auto x = normal(n);
    const Outputs got = run(0, [&](OpRun& op) {
      const Vec<float> y = op.in_out("y", x);
      unary_map(op.ctx, {Unary::Square, y, y});
    });
    expect_ulps(got["y"], apply(kUnary[1], x), 1);
  }
}

TEST_P(Elementwise, Binary) {
  using Op = std::pair<Binary, double (*)(double, double)>;
  const Op ops[] = {{Binary::Add, [](double a, double b) { return a + b; }},
                    {Binary::Subtract, [](double a, double b) { return a - b; }},
                    {Binary::Multiply, [](double a, double b) { return a * b; }},
                    {Binary::Divide, [](double a, double b) { return a / b; }}};
  for (const Op& pair : ops) {
    const Binary f = pair.first;  // a lambda of C++20 may capture no structured binding, says clang 14
    const auto want_of = pair.second;
    for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{13}, kChunk + 1}) {
      const auto a = normal(n, 1), b = normal(n, 2);
      std::vector<double> want(a.size());
      for (size_t i = 0; i < a.size(); ++i)
        want[i] = want_of(static_cast<double>(a[i]), static_cast<double>(b[i]));
      const Outputs got = run(0, [&](OpRun& op) {
        binary_map(op.ctx, {f, op.in(a), op.in(b), op.out("y", n)});
        const Vec<float> in_place = op.in_out("in_place", b);
        binary_map(op.ctx, {f, op.in(a), in_place, in_place});
      });
      expect_ulps(got["y"], want, 1);
      EXPECT_EQ(got["y"], got["in_place"]);
    }
  }
}

TEST_P(Elementwise, AffineAccumulateScaleFill) {
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{13}, kChunk + 1}) {
    const auto x = normal(n, 1), y = normal(n, 2);
    const Outputs got = run(0, [&](OpRun& op) {
      affine(op.ctx, {op.in(x), 3.f, -2.f, op.out("affine", n)});
      accumulate(op.ctx, {op.in(x), -0.5f, op.in_out("accumulate", y)});
      scale_by(op.ctx, {op.in(x), op.in(0.25f), op.out("scale_by", n)});
      fill(op.ctx, op.out("fill", n), 4.f);
    });
    std::vector<double> affine_want, accumulate_want, scale_want;
    for (size_t i = 0; i < x.size(); ++i) {
      const double xi = static_cast<double>(x[i]), yi = static_cast<double>(y[i]);
      affine_want.push_back(3 * xi - 2);
      accumulate_want.push_back(yi - 0.5 * xi);
      scale_want.push_back(0.25 * xi);
    }
    expect_within(got["affine"], affine_want, 2e-7);
    expect_within(got["accumulate"], accumulate_want, 2e-7);
    expect_ulps(got["scale_by"], scale_want, 0);
    EXPECT_EQ(got["fill"], std::vector<float>(x.size(), 4.f));
  }
}

TEST_P(Elementwise, RowOpsRespectStrides) {
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{13}, int64_t{700}}) {
    for (int64_t d : {int64_t{0}, int64_t{1}, int64_t{11}, int64_t{64}}) {
      SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(d));
      const auto a = normal(n * d, 1), b = normal(n * d, 2), u = uniform(n, 0.f, 1.f, 3), s = normal(d, 4);
      const Outputs got = run(0, [&](OpRun& op) {
        mix_rows(op.ctx, {op.in(a, n, d, d + 3), op.in(b, n, d), op.in(u), op.out("mix", n, d, d + 1)});
        scale_rows(op.ctx, {op.in(a, n, d, d + 3), op.in(u), op.out("scale", n, d, d + 2)});
        broadcast_columns(op.ctx, {op.in(s), op.out("broadcast", n, d, d + 5)});
      });
      reference::Matrix<double> mix(n, d), scale(n, d), broadcast(n, d);
      const reference::Matrix<double> am(n, d, a), bm(n, d, b);
      for (int64_t i = 0; i < n; ++i) {
        const double ui = static_cast<double>(u[static_cast<size_t>(i)]);
        for (int64_t j = 0; j < d; ++j) {
          mix(i, j) = ui * am(i, j) + (1 - ui) * bm(i, j);
          scale(i, j) = ui * am(i, j);
          broadcast(i, j) = static_cast<double>(s[static_cast<size_t>(j)]);
        }
      }
      expect_within(got["mix"], mix.data, 2e-7);
      expect_ulps(got["scale"], scale.data, 1);
      expect_ulps(got["broadcast"], broadcast.data, 0);
    }
  }
}

TEST_P(Elementwise, MixIsExactAtTheEnds) {
  const std::vector<float> a = {1e8f, -3.f}, b = {1e-8f, 7.f};
  const Outputs got = run(0, [&](OpRun& op) {
    mix_rows(op.ctx,
             {op.in(a, 2, 1), op.in(b, 2, 1), op.in(std::vector<float>{0.f, 1.f}), op.out("y", 2, 1)});
  });
  EXPECT_EQ(got["y"], (std::vector<float>{1e-8f, -3.f}));
}

TEST_P(Elementwise, RefusesWrongShapes) {
  Context& ctx = context();
  float unused = 0;
  const Vec<float> three{&unused, 3}, four{&unused, 4}, two{&unused, 2};
  const Mat<float> m34{&unused, 3, 4}, m43{&unused, 4, 3};
  const auto bad = ErrorCode::InvalidArgument;
  expect_error(bad, "unary_map: x has 3 values, y has 4", [&] { unary_map(ctx, {Unary::Exp, three, four}); });
  expect_error(bad, "binary_map: b has 4 values, y has 3", [&] {
    binary_map(ctx, {Binary::Add, three, four, three});
  });
  expect_error(bad, "unary_map: f is 11, expected 0 to 10", [&] {
    unary_map(ctx, {static_cast<Unary>(11), three, three});
  });
  expect_error(bad, "binary_map: f is -1, expected 0 to 3", [&] {
    binary_map(ctx, {static_cast<Binary>(-1), three, three, three});
  });
  expect_error(bad, "affine: x has 3 values, y has 4", [&] { affine(ctx, {three, 1, 0, four}); });
  expect_error(bad, "accumulate: x has 3 values, y has 4", [&] { accumulate(ctx, {three, 1, four}); });
  expect_error(bad, "scale_by: s has 2 values, expected 1", [&] { scale_by(ctx, {three, two, three}); });
  expect_error(bad, "mix_rows: b is 4 x 3, y is 3 x 4", [&] { mix_rows(ctx, {m34, m43, three, m34}); });
  expect_error(bad, "mix_rows: u has 4 values, y has 3 rows", [&] { mix_rows(ctx, {m34, m34, four, m34}); });
  expect_error(bad, "scale_rows: s has 4 values, y has 3 rows", [&] { scale_rows(ctx, {m34, four, m34}); });
  expect_error(bad, "broadcast_columns: s has 3 values, y has 4 columns", [&] {
    broadcast_columns(ctx, {three, m34});
  });
}

}  // namespace
}  // namespace pwdice::test
