// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Work     vectors in chunks of kChunk values, matrices in chunks of whole rows of about as many; a smaller
//          tensor never wakes a worker.
// Numerics the functions of vector_math-inl.h; NaN in gives NaN out, for Step and Relu too.
#include <algorithm>

#include "../backends.h"
#include "parallel.h"

// clang-format off: foreach_target.h includes this file once per target and comes before everything of Highway
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cpp"
#include "hwy/foreach_target.h"
#include "tail-inl.h"
#include "vector_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class D, class V = hn::Vec<D>>
HWY_INLINE V step(D d, V x) {
  const V one = hn::Set(d, 1.f), zero = hn::Zero(d);
  return hn::IfThenElse(hn::Eq(x, x), hn::IfThenElse(hn::Gt(x, zero), one, zero), x);
}

void unary(Unary f, const float* x, float* y, int64_t n) {
  switch (f) {
    case Unary::Negate:
      return map(x, y, n, [](auto, auto v) HWY_ATTR { return hn::Neg(v); });
    case Unary::Square:
      return map(x, y, n, [](auto, auto v) HWY_ATTR { return hn::Mul(v, v); });
    case Unary::Sqrt:
      return map(x, y, n, [](auto, auto v) HWY_ATTR { return hn::Sqrt(v); });
    case Unary::Reciprocal:
      return map(x, y, n, [](auto d, auto v) HWY_ATTR { return hn::Div(hn::Set(d, 1.f), v); });
    case Unary::Exp:
      return map(x, y, n, [](auto d, auto v) HWY_ATTR { return exp(d, v); });
    case Unary::Log:
      return map(x, y, n, [](auto d, auto v) HWY_ATTR { return log(d, v); });
    case Unary::Tanh:
      return map(x, y, n, [](auto d, auto v) HWY_ATTR { return tanh(d, v); });
    case Unary::Relu:
      return map(x, y, n, [](auto d, auto v) HWY_ATTR { return math::at_least(d, 0.f, v); });
    case Unary::Step:
      return map(x, y, n, [](auto d, auto v) HWY_ATTR { return step(d, v); });
    case Unary::Softplus:
      return map(x, y, n, [](auto d, auto v) HWY_ATTR { return softplus(d, v); });
    case Unary::Sigmoid:
      return map(x, y, n, [](auto d, auto v) HWY_ATTR { return sigmoid(d, v); });
  }
}

void binary(Binary f, const float* a, const float* b, float* y, int64_t n) {
  switch (f) {
    case Binary::Add:
      return map(a, b, y, n, [](auto, auto u, auto v) HWY_ATTR { return hn::Add(u, v); });
    case Binary::Subtract:
      return map(a, b, y, n, [](auto, auto u, auto v) HWY_ATTR { return hn::Sub(u, v); });
    case Binary::Multiply:
      return map(a, b, y, n, [](auto, auto u, auto v) HWY_ATTR { return hn::Mul(u, v); });
    case Binary::Divide:
      return map(a, b, y, n, [](auto, auto u, auto v) HWY_ATTR { return hn::Div(u, v); });
  }
}

void scale_shift(const float* x, float scale, float shift, float* y, int64_t n) {
  map(x, y, n, [=](auto d, auto v) HWY_ATTR { return hn::MulAdd(v, hn::Set(d, scale), hn::Set(d, shift)); });
}

void scale_add(const float* x, float scale, float* y, int64_t n) {
  map(x, y, y, n, [=](auto d, auto v, auto old) HWY_ATTR { return hn::MulAdd(v, hn::Set(d, scale), old); });
}

void scale(const float* x, float s, float* y, int64_t n) {
  map(x, y, n, [=](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Set(d, s)); });
}

// u a + (1 - u) b, not b + u (a - b): exact at u = 0 and u = 1 also when a and b differ in magnitude.
void mix(const float* a, const float* b, float u, float* y, int64_t n) {
  map(a, b, y, n, [=](auto d, auto va, auto vb) HWY_ATTR {
    return hn::MulAdd(va, hn::Set(d, u), hn::Mul(vb, hn::Set(d, 1.f - u)));
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {

HWY_EXPORT(unary);
HWY_EXPORT(binary);
HWY_EXPORT(scale_shift);
HWY_EXPORT(scale_add);
HWY_EXPORT(scale);
HWY_EXPORT(mix);

namespace {

// 128 KiB: below it a second thread costs more than it brings (measured on Zen 3, waking included).
constexpr int64_t kChunk = 32768;

template <class Body>
void for_chunks(Context& ctx, int64_t n, Body&& body) {
  ctx.pool().parallel_for(chunk_count(n, kChunk), [&](int64_t c, int) {
    const Range r = chunk_range(n, kChunk, c);
    body(r.begin, r.end - r.begin);
  });
}

template <class Body>
void for_rows(Context& ctx, int64_t rows, int64_t cols, Body&& body) {
  if (cols == 0) return;
  const int64_t chunk = std::max<int64_t>(1, kChunk / cols);
  ctx.pool().parallel_for(chunk_count(rows, chunk), [&](int64_t c, int) {
    const Range r = chunk_range(rows, chunk, c);
    for (int64_t i = r.begin; i < r.end; ++i) body(i);
  });
}

}  // namespace

void unary_map(Context& ctx, const UnaryMap& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(unary);
  for_chunks(ctx, op.x.size, [&](int64_t at, int64_t n) { run(op.f, op.x.data + at, op.y.data + at, n); });
}

void binary_map(Context& ctx, const BinaryMap& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(binary);
  for_chunks(ctx, op.y.size,
             [&](int64_t at, int64_t n) { run(op.f, op.a.data + at, op.b.data + at, op.y.data + at, n); });
}

void affine(Context& ctx, const Affine& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(scale_shift);
  for_chunks(ctx, op.x.size,
             [&](int64_t at, int64_t n) { run(op.x.data + at, op.scale, op.shift, op.y.data + at, n); });
}

void accumulate(Context& ctx, const Accumulate& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(scale_add);
  for_chunks(ctx, op.x.size,
             [&](int64_t at, int64_t n) { run(op.x.data + at, op.scale, op.y.data + at, n); });
}

void scale_by(Context& ctx, const ScaleBy& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(scale);
  const float s = op.s[0];
  for_chunks(ctx, op.x.size, [&](int64_t at, int64_t n) { run(op.x.data + at, s, op.y.data + at, n); });
}

void mix_rows(Context& ctx, const MixRows& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(mix);
  for_rows(ctx, op.y.rows, op.y.cols,
           [&](int64_t i) { run(op.a.row(i), op.b.row(i), op.u[i], op.y.row(i), op.y.cols); });
}

void scale_rows(Context& ctx, const ScaleRows& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(scale);
  for_rows(ctx, op.y.rows, op.y.cols, [&](int64_t i) { run(op.x.row(i), op.s[i], op.y.row(i), op.y.cols); });
}

void broadcast_columns(Context& ctx, const BroadcastColumns& op) {
  for_rows(ctx, op.y.rows, op.y.cols, [&](int64_t i) { std::copy_n(op.s.data, op.y.cols, op.y.row(i)); });
}

void fill(Context& ctx, Vec<float> values, float value) {
  for_chunks(ctx, values.size, [&](int64_t at, int64_t n) { std::fill_n(values.data + at, n, value); });
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
