// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/row_norm.h"

#include <cmath>
#include <limits>

#include "op_case.h"
#include "reference.h"

namespace pwdice::test {
namespace {

class RowNorm : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, RowNorm, testing::ValuesIn(test_backends()), backend_name);

template <class T>
struct Normalised {
  reference::Matrix<T> z;
  std::vector<T> inv_norm;
};

template <class T>
Normalised<T> normalise(const reference::Matrix<T>& v) {
  Normalised<T> out{v, {}};
  for (int64_t i = 0; i < v.rows; ++i) {
    T squares = 0;
    for (int64_t j = 0; j < v.cols; ++j) squares += v(i, j) * v(i, j);
    const T inv = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (int64_t j = 0; j < v.cols; ++j) out.z(i, j) = v(i, j) * inv;
    out.inv_norm.push_back(inv);
  }
  return out;
}

template <class T>
reference::Matrix<T> backward(const Normalised<T>& f, const reference::Matrix<T>& d_z) {
  reference::Matrix<T> d_v(d_z.rows, d_z.cols);
  for (int64_t i = 0; i < d_z.rows; ++i) {
    T along = 0;
    for (int64_t j = 0; j < d_z.cols; ++j) along += f.z(i, j) * d_z(i, j);
    for (int64_t j = 0; j < d_z.cols; ++j) {
      d_v(i, j) = (d_z(i, j) - f.z(i, j) * along) * f.inv_norm[static_cast<size_t>(i)];
    }
  }
  return d_v;
}

TEST_P(RowNorm, MatchesReferenceForwardAndBackward) {
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{13}, int64_t{513}}) {
    for (int64_t d : {int64_t{1}, int64_t{3}, int64_t{31}, int64_t{32}, int64_t{33}, int64_t{128}}) {
      for (Data data : {Data::Normal, Data::Huge, Data::Equal}) {
        SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(d) + ", " + name(data));
        const auto v = make_data(data, n * d, 1), d_z = normal(n * d, 2);
        const auto exact = normalise(reference::Matrix<double>(n, d, v));
        const auto plain = normalise(reference::Matrix<float>(n, d, v));
        const Outputs got = run(0, [&](OpRun& op) {
          const Mat<float> z = op.out("z", n, d, d + 1);
          const Vec<float> inv_norm = op.out("inv_norm", n);
          row_norm_forward(op.ctx, {op.in(v, n, d, d + 2), z, inv_norm});
          row_norm_backward(op.ctx, {z, op.in(d_z, n, d), inv_norm, op.out("d_v", n, d, d + 3)});
        });
        expect_close(got["z"], exact.z.data, plain.z.data);
        expect_close(got["inv_norm"], exact.inv_norm, plain.inv_norm);
        expect_close(got["d_v"], backward(exact, reference::Matrix<double>(n, d, d_z)).data,
                     backward(plain, reference::Matrix<float>(n, d, d_z)).data);
      }
    }
  }
}

TEST_P(RowNorm, GradientAgreesWithCentralDifferences) {
  const int64_t n = 5, d = 7;
  const auto v = normal(n * d, 1), d_z = normal(n * d, 2);
  const Outputs got = run(0, [&](OpRun& op) {
    const Mat<float> z = op.out("z", n, d);
    const Vec<float> inv_norm = op.out("inv_norm", n);
    row_norm_forward(op.ctx, {op.in(v, n, d), z, inv_norm});
    row_norm_backward(op.ctx, {z, op.in(d_z, n, d), inv_norm, op.out("d_v", n, d)});
  });
  const auto loss = [&](const std::vector<double>& x) {
    return reference::dot(normalise(reference::Matrix<double>(n, d, x)).z.data, to<double>(d_z));
  };
  expect_gradient(got["d_v"], loss, to<double>(v), 1e-5);
}

TEST_P(RowNorm, WorksInPlace) {
  const int64_t n = 13, d = 32;
  const auto v = normal(n * d, 1), d_z = normal(n * d, 2);
  const Outputs got = run(0, [&](OpRun& op) {
    const Mat<float> z = op.out("z", n, d), in_place = op.in_out("in_place", v, n, d);
    const Vec<float> inv_norm = op.out("inv_norm", n);
    row_norm_forward(op.ctx, {op.in(v, n, d), z, inv_norm});
    row_norm_forward(op.ctx, {in_place, in_place, op.out("inv_norm_again", n)});
    const Mat<float> d_v = op.in_out("d_in_place", d_z, n, d);
    row_norm_backward(op.ctx, {z, op.in(d_z, n, d), inv_norm, op.out("d_v", n, d)});
    row_norm_backward(op.ctx, {z, d_v, inv_norm, d_v});
  });
  EXPECT_EQ(got["z"], got["in_place"]);
  EXPECT_EQ(got["d_v"], got["d_in_place"]);
}

TEST_P(RowNorm, ZeroTinyHugeAndNanRows) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> v = {0.f, 0.f, 3e-30f, 4e-30f, 3e30f, 4e30f, nan, 1.f};
  const std::vector<float> d_z = {1.f, 2.f, 0.f, 0.f, 0.f, 0.f, 1.f, 1.f};
  const Outputs got = run(0, [&](OpRun& op) {
    const Mat<float> z = op.out("z", 4, 2);
    const Vec<float> inv_norm = op.out("inv_norm", 4);
    row_norm_forward(op.ctx, {op.in(v, 4, 2), z, inv_norm});
    row_norm_backward(op.ctx, {z, op.in(d_z, 4, 2), inv_norm, op.out("d_v", 4, 2)});
  });
  const auto z = got["z"], d_v = got["d_v"];
  expect_within({z.begin(), z.begin() + 6}, {0, 0, 0.6, 0.8, 0.6, 0.8}, 3e-7);
  EXPECT_EQ(got["inv_norm"][0], 0.f);
  EXPECT_EQ(d_v[0], 0.f);
  EXPECT_EQ(d_v[1], 0.f);
  EXPECT_TRUE(std::isnan(z[6]) && std::isnan(z[7]) && std::isnan(d_v[6]) && std::isnan(d_v[7]));
}

TEST_P(RowNorm, RefusesWrongShapes) {
  Context& ctx = context();
  float unused = 0;
  const Mat<float> a{&unused, 2, 3}, b{&unused, 3, 2};
  const Vec<float> two{&unused, 2}, three{&unused, 3};
  const auto bad = ErrorCode::InvalidArgument;
  expect_error(bad, "row_norm_forward: z is 3 x 2, expected 2 x 3", [&] {
    row_norm_forward(ctx, {a, b, two});
  });
  expect_error(bad, "row_norm_forward: inv_norm has 3 values, expected 2", [&] {
    row_norm_forward(ctx, {a, a, three});
  });
  expect_error(bad, "row_norm_backward: d_v is 3 x 2, expected 2 x 3", [&] {
    row_norm_backward(ctx, {a, a, two, b});
  });
}

}  // namespace
}  // namespace pwdice::test
