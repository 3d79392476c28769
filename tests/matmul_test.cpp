// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/matmul.h"

#include <algorithm>
#include <cmath>

#include "op_case.h"
#include "reference.h"

namespace pwdice::test {
namespace {

using reference::Matrix;

class Matmul : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, Matmul, testing::ValuesIn(test_backends()), backend_name);

struct Shape {
  int64_t m, n, k;
};

// Each of m, n, k around the tiles, the narrow limit (32), a block of k (256) and of packed rows (512); and
// empty.
constexpr Shape kShapes[] = {{1, 1, 1},    {6, 16, 13},  {7, 17, 256}, {5, 15, 257},  {49, 33, 40},
                             {33, 49, 11}, {40, 2, 300}, {2, 40, 300}, {35, 37, 513}, {61, 67, 1100},
                             {0, 5, 3},    {5, 0, 3},    {4, 36, 0},   {36, 40, 0},   {97, 130, 64}};

template <class T>
std::vector<T> product(const Shape& s, const std::vector<float>& a, bool ta, const std::vector<float>& b,
                       bool tb) {
  const Matrix<T> a_m(ta ? s.k : s.m, ta ? s.m : s.k, a), b_m(tb ? s.n : s.k, tb ? s.k : s.n, b);
  return reference::product(ta ? transpose(a_m) : a_m, tb ? transpose(b_m) : b_m).data;
}

TEST_P(Matmul, MatchesReferenceForEveryTransposition) {
  for (const Shape& s : kShapes) {
    for (bool ta : {false, true}) {
      for (bool tb : {false, true}) {
        SCOPED_TRACE(std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
                     (ta ? ", a^T" : "") + (tb ? ", b^T" : ""));
        const auto a = normal(s.m * s.k, 1), b = normal(s.k * s.n, 2);
        const Outputs got = run(matmul_scratch_bytes(s.m, s.n, s.k), [&](OpRun& op) {
          const Mat<const float> a_view = ta ? op.in(a, s.k, s.m, s.m + 3) : op.in(a, s.m, s.k, s.k + 3);
          const Mat<const float> b_view = tb ? op.in(b, s.n, s.k, s.k + 1) : op.in(b, s.k, s.n, s.n + 1);
          matmul(op.ctx, {a_view, b_view, ta, tb, op.out("c", s.m, s.n, s.n + 2)});
        });
        expect_close(got["c"], product<double>(s, a, ta, b, tb), product<float>(s, a, ta, b, tb));
      }
    }
  }
}

// More bands of b than the grid of a GPU has blocks for: they stride.
TEST_P(Matmul, TransposesManyRows) {
  const Shape s{1, 1030 * 32 + 5, 2};
  const auto a = normal(s.k, 1), b = normal(s.n * s.k, 2);
  OpRun op(context(), 0);
  matmul(op.ctx, {op.in(a, s.k, 1), op.in(b, s.n, s.k), true, true, op.out("c", 1, s.n)});
  expect_close(op.finish()["c"], product<double>(s, a, true, b, true), product<float>(s, a, true, b, true));
}

// The a-priori bound of a sum of k products in any order, k u sum |a| |b|. Equal values round alike at every
// step, so there plain code of another order is no yardstick.
double error_bound(const Shape& s, std::vector<float> a, bool ta, std::vector<float> b) {
  for (float& v : a) v = std::abs(v);
  for (float& v : b) v = std::abs(v);
  const std::vector<double> sums = product<double>(s, a, ta, b, false);
  return static_cast<double>(s.k) * (0x1p-24 * *std::max_element(sums.begin(), sums.end()) + 0x1p-149);
}

TEST_P(Matmul, StaysWithinTheErrorBoundOnExtremeData) {
  const Shape s{37, 35, 290};
  for (Data data : kAllData) {
    for (bool ta : {false, true}) {
      SCOPED_TRACE(name(data));
      const auto a = make_data(data, s.m * s.k, 1), b = make_data(data, s.k * s.n, 2);
      const Outputs got = run(matmul_scratch_bytes(s.m, s.n, s.k), [&](OpRun& op) {
        const Mat<const float> a_view = ta ? op.in(a, s.k, s.m) : op.in(a, s.m, s.k);
        matmul(op.ctx, {a_view, op.in(b, s.k, s.n), ta, false, op.out("c", s.m, s.n)});
      });
      expect_within(got["c"], product<double>(s, a, ta, b, false), 0, error_bound(s, a, ta, b));
    }
  }
}

TEST_P(Matmul, RefusesWrongShapes) {
  const std::vector<float> six(6, 1.f);
  expect_error(ErrorCode::InvalidArgument, "matmul: op(a) is 2 x 3, op(b) is 2 x 3", [&] {
    OpRun op(context(), 0);
    pwdice::matmul(op.ctx, {op.in(six, 2, 3), op.in(six, 2, 3), false, false, op.out("c", 2, 3)});
  });
  expect_error(ErrorCode::InvalidArgument, "matmul: c is 3 x 2, expected 2 x 2", [&] {
    OpRun op(context(), 0);
    pwdice::matmul(op.ctx, {op.in(six, 2, 3), op.in(six, 2, 3), false, true, op.out("c", 3, 2)});
  });
}

}  // namespace
}  // namespace pwdice::test
