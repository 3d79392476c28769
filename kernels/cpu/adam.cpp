// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Work     one pass over gradient, moments and parameters, in chunks that fit a core's L2.
// Numerics the bias corrections are folded into one factor each, adam_factors.
#include "../backends.h"
#include "parallel.h"

// clang-format off: foreach_target.h includes this file once per target and comes before everything of Highway
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adam.cpp"
#include "hwy/foreach_target.h"
#include "tail-inl.h"
#include "vector_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class D>
struct AdamState {
  hn::Vec<D> param, m, v;
};

template <class D>
HWY_INLINE AdamState<D> advance(D d, const AdamFactors& f, hn::Vec<D> grad, AdamState<D> s) {
  const auto g = hn::MulAdd(hn::Set(d, f.weight_decay), s.param, hn::Mul(hn::Set(d, f.scale), grad));
  const auto m = hn::MulAdd(hn::Set(d, f.one_minus_beta1), g, hn::Mul(hn::Set(d, f.beta1), s.m));
  const auto v = hn::MulAdd(hn::Mul(hn::Set(d, f.one_minus_beta2), g), g, hn::Mul(hn::Set(d, f.beta2), s.v));
  const auto root = hn::MulAdd(hn::Sqrt(v), hn::Set(d, f.inverse_root2), hn::Set(d, f.eps));
  return {hn::Sub(s.param, hn::Div(hn::Mul(hn::Set(d, f.step), m), root)), m, v};
}

void adam_chunk(const AdamFactors& f, const float* grad, float* param, float* m, float* v, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto s = advance(d, f, hn::LoadU(d, grad + i),
                           {hn::LoadU(d, param + i), hn::LoadU(d, m + i), hn::LoadU(d, v + i)});
    hn::StoreU(s.param, d, param + i);
    hn::StoreU(s.m, d, m + i);
    hn::StoreU(s.v, d, v + i);
  }
  if (i == n) return;
  const auto rest = static_cast<size_t>(n - i);
  const auto s = advance(d, f, load_n(d, grad + i, rest),
                         {load_n(d, param + i, rest), load_n(d, m + i, rest), load_n(d, v + i, rest)});
  store_n(s.param, d, param + i, rest);
  store_n(s.m, d, m + i, rest);
  store_n(s.v, d, v + i, rest);
}

void ema_chunk(float decay, float rest, const float* param, float* average, int64_t n) {
  map(param, average, average, n, [=](auto d, auto p, auto old) HWY_ATTR {
    return hn::MulAdd(hn::Set(d, rest), p, hn::Mul(hn::Set(d, decay), old));
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {

HWY_EXPORT(adam_chunk);
HWY_EXPORT(ema_chunk);

namespace {

constexpr int64_t kChunk = 8192;  // 7 streams of 32 KiB

bool stopped(Vec<const float> ok) { return !(ok[0] > 0.f); }

}  // namespace

void adam(Context& ctx, const Adam& op) {
  if (stopped(op.ok)) return;
  const AdamFactors f = adam_factors(op, op.lr[0], op.scale[0], ++op.t[0]);
  const auto run = HWY_DYNAMIC_DISPATCH(adam_chunk);
  const int64_t n = op.param.size;
  ctx.pool().parallel_for(chunk_count(n, kChunk), [&](int64_t c, int) {
    const Range r = chunk_range(n, kChunk, c);
    run(f, op.grad.data + r.begin, op.param.data + r.begin, op.m.data + r.begin, op.v.data + r.begin,
        r.end - r.begin);
  });
}

void clip_scale(Context& ctx, const ClipScale& op) {
  cpu::reduce_norm(ctx, {op.grad, op.norm}, "clip_scale");
  const float ratio = op.max_norm / (op.norm[0] + 1e-6f);
  op.scale[0] = ratio > 1.f ? 1.f : ratio;  // NaN stays NaN
}

void ema(Context& ctx, const Ema& op) {
  if (stopped(op.ok)) return;
  const auto run = HWY_DYNAMIC_DISPATCH(ema_chunk);
  const auto rest = static_cast<float>(1 - static_cast<double>(op.decay));
  const int64_t n = op.param.size;
  ctx.pool().parallel_for(chunk_count(n, kChunk), [&](int64_t c, int) {
    const Range r = chunk_range(n, kChunk, c);
    run(op.decay, rest, op.param.data + r.begin, op.average.data + r.begin, r.end - r.begin);
  });
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
