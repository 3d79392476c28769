// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Work     positives and negatives are cut in chunks separately, so that a chunk has one sign and one weight.
// Numerics softplus in float over SIMD lanes within a chunk, chunks in double; the two means meet in double.
#include <algorithm>

#include "../backends.h"
#include "../finite.h"
#include "parallel.h"

// clang-format off: foreach_target.h includes this file once per target and comes before everything of Highway
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bce.cpp"
#include "hwy/foreach_target.h"
#include "tail-inl.h"
#include "vector_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

// sum softplus(sign h)
double softplus_sum(const float* h, float sign, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, sign);
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = hn::Add(sum, softplus(d, hn::Mul(s, hn::LoadU(d, h + i))));
  HWY_ALIGN float last[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(sum, d, last);
  double total = 0;
  for (int64_t k = 0; k < lanes; ++k) total += static_cast<double>(last[k]);
  if (i < n) {
    hn::Store(softplus(d, hn::Mul(s, load_n(d, h + i, static_cast<size_t>(n - i)))), d, last);
    for (int64_t k = 0; k < n - i; ++k) total += static_cast<double>(last[k]);
  }
  return total;
}

// d_h = weight sigmoid(sign h), the sign of the gradient in the weight
void sigmoid_scaled(const float* h, float sign, float weight, float* d_h, int64_t n) {
  map(h, d_h, n, [=](auto d, auto v) HWY_ATTR {
    return hn::Mul(hn::Set(d, weight), sigmoid(d, hn::Mul(hn::Set(d, sign), v)));
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {

HWY_EXPORT(softplus_sum);
HWY_EXPORT(sigmoid_scaled);

namespace {

// body(chunk, range, positive) over the chunks of the positives, then of the negatives.
template <class Body>
void for_halves(Context& ctx, int64_t n, int64_t positives, Body&& body) {
  const int64_t first = chunk_count(positives, kBceChunk), second = chunk_count(n - positives, kBceChunk);
  ctx.pool().parallel_for(first + second, [&](int64_t c, int) {
    const bool positive = c < first;
    Range r =
        positive ? chunk_range(positives, kBceChunk, c) : chunk_range(n - positives, kBceChunk, c - first);
    if (!positive) r = {r.begin + positives, r.end + positives};
    body(c, r, positive);
  });
}

}  // namespace

void bce_forward(Context& ctx, const BceForward& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(softplus_sum);
  ScratchScope scope(ctx.scratch());
  const int64_t n = op.logits.size, p = op.positives;
  const int64_t first = chunk_count(p, kBceChunk), chunks = first + chunk_count(n - p, kBceChunk);
  double* partials = ctx.scratch().take<double>(chunks, "bce_forward");
  for_halves(ctx, n, p, [&](int64_t c, Range r, bool positive) {
    partials[c] = run(op.logits.data + r.begin, positive ? -1.f : 1.f, r.end - r.begin);
  });
  double positive = 0, negative = 0;
  for (int64_t c = 0; c < chunks; ++c) (c < first ? positive : negative) += partials[c];
  op.loss[0] = static_cast<float>(positive / static_cast<double>(p) + negative / static_cast<double>(n - p));
  check_loss(ctx, "bce_forward", op.loss, {{"logits", op.logits}});
}

void bce_backward(Context& ctx, const BceBackward& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(sigmoid_scaled);
  const int64_t n = op.logits.size, p = op.positives;
  const float d_loss = op.d_loss[0];
  const float positive_weight = -d_loss / static_cast<float>(p),
              negative_weight = d_loss / static_cast<float>(n - p);
  for_halves(ctx, n, p, [&](int64_t, Range r, bool positive) {
    run(op.logits.data + r.begin, positive ? -1.f : 1.f, positive ? positive_weight : negative_weight,
        op.d_logits.data + r.begin, r.end - r.begin);
  });
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
