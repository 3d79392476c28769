// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Work     chunks of whole rows, about kValues values each; a row has one owner.
// Numerics the sum of squares is kept in double: rows of 1e-30 or 1e30 are normalised like any other.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../backends.h"
#include "parallel.h"

// clang-format off: foreach_target.h includes this file once per target and comes before everything of Highway
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_norm.cpp"
#include "hwy/foreach_target.h"
#include "tail-inl.h"
#include "vector_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

double square_sum(const float* v, int64_t d) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
  auto s = hn::Zero(dd);
  int64_t j = 0;
  for (; j + lanes <= d; j += lanes) {
    const auto x = hn::PromoteTo(dd, hn::LoadU(df, v + j));
    s = hn::MulAdd(x, x, s);
  }
  double total = hn::GetLane(hn::SumOfLanes(dd, s));
  for (; j < d; ++j) total += static_cast<double>(v[j]) * static_cast<double>(v[j]);
  return total;
}

float inner_product(const float* a, const float* b, int64_t d) {
  const hn::ScalableTag<float> tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  auto s = hn::Zero(tag);
  int64_t j = 0;
  for (; j + lanes <= d; j += lanes) s = hn::MulAdd(hn::LoadU(tag, a + j), hn::LoadU(tag, b + j), s);
  const auto rest = static_cast<size_t>(d - j);
  if (rest > 0) s = hn::MulAdd(load_n(tag, a + j, rest), load_n(tag, b + j, rest), s);
  return hn::GetLane(hn::SumOfLanes(tag, s));
}

// 0 for a zero row and for a norm so small that its inverse is no float; NaN stays NaN.
float inverse(double norm) {
  const double inv = 1 / norm;
  return inv > static_cast<double>(std::numeric_limits<float>::max()) ? 0.f : static_cast<float>(inv);
}

void normalise(const Mat<const float>& v, const Mat<float>& z, const Vec<float>& inv_norm, int64_t begin,
               int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float inv = inverse(std::sqrt(square_sum(v.row(i), v.cols)));
    inv_norm[i] = inv;
    map(v.row(i), z.row(i), v.cols, [=](auto d, auto x) HWY_ATTR { return hn::Mul(x, hn::Set(d, inv)); });
  }
}

void project(const RowNormBackward& op, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float along = inner_product(op.z.row(i), op.d_z.row(i), op.z.cols), inv = op.inv_norm[i];
    map(op.d_z.row(i), op.z.row(i), op.d_v.row(i), op.z.cols, [=](auto d, auto d_z, auto z) HWY_ATTR {
      return hn::Mul(hn::NegMulAdd(z, hn::Set(d, along), d_z), hn::Set(d, inv));
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {

HWY_EXPORT(normalise);
HWY_EXPORT(project);

namespace {

constexpr int64_t kValues = 16384;

template <class Body>
void for_row_chunks(Context& ctx, int64_t rows, int64_t cols, Body&& body) {
  const int64_t chunk = std::max<int64_t>(1, kValues / std::max<int64_t>(1, cols));
  ctx.pool().parallel_for(chunk_count(rows, chunk), [&](int64_t c, int) {
    const Range r = chunk_range(rows, chunk, c);
    body(r.begin, r.end);
  });
}

}  // namespace

void row_norm_forward(Context& ctx, const RowNormForward& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(normalise);
  for_row_chunks(ctx, op.v.rows, op.v.cols,
                 [&](int64_t begin, int64_t end) { run(op.v, op.z, op.inv_norm, begin, end); });
}

void row_norm_backward(Context& ctx, const RowNormBackward& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(project);
  for_row_chunks(ctx, op.z.rows, op.z.cols, [&](int64_t begin, int64_t end) { run(op, begin, end); });
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
