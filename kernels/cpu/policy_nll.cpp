// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Work     An action has only a few components, fewer than SIMD lanes. A block of rows is therefore copied
//          into flat buffers of means, raws and actions, handled across rows and components alike, and copied
//          back.
// Numerics x = clamp(atanh(a), +-atanh(1 - 1e-6)) instead of atanh(clamp(a)): atanh is monotone, and the
//          bound 1 - 1e-6 rounded to float would move atanh by 0.006. 1 - a^2 = (1 - a)(1 + a) keeps its
//          digits near 1. Near 0, atanh(a) = 1/2 log(1 + 2a/(1 - a)) goes through log1p.
#include <algorithm>
#include <cmath>

#include "../backends.h"
#include "../finite.h"
#include "parallel.h"

// clang-format off: foreach_target.h includes this file once per target and comes before everything of Highway
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/policy_nll.cpp"
#include "hwy/foreach_target.h"
#include "tail-inl.h"
#include "vector_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr float kAtanhBound = 7.25432861f;  // atanh(1 - 1e-6)
constexpr float kLog2Pi = 1.83787707f;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V clamped_atanh(D d, V a) {
  const V one = hn::Set(d, 1.f), magnitude = hn::Abs(a);
  const V t = hn::Div(hn::Add(magnitude, magnitude), hn::Sub(one, magnitude));  // (1 + a)/(1 - a) - 1
  const V small = math::log1p_unit(d, math::at_most(d, 1.f, t)), large = log(d, hn::Add(one, t));
  const V x = hn::Mul(hn::Set(d, 0.5f), hn::IfThenElse(hn::Le(t, one), small, large));
  return hn::CopySign(math::at_most(d, kAtanhBound, x), a);
}

// What forward and backward share: t = tanh(raw), logvar = 7 t - 3, e = x - mean, precision = exp(-logvar).
template <class D>
struct Gaussian {
  using V = hn::Vec<D>;
  V t, logvar, e, precision;

  HWY_INLINE Gaussian(D d, V mean, V raw, V action) {
    t = tanh(d, raw);
    logvar = hn::MulAdd(hn::Set(d, 7.f), t, hn::Set(d, -3.f));
    e = hn::Sub(clamped_atanh(d, action), mean);
    precision = exp(d, hn::Neg(logvar));
  }
};

// term = log density of one component, the tanh correction included; may overwrite mean.
void log_density(const float* mean, const float* raw, const float* action, float* term, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.f);
  for (int64_t i = 0; i < n; i += lanes) {  // the buffers are padded to whole vectors
    const auto a = hn::LoadU(d, action + i);
    const Gaussian<decltype(d)> g(d, hn::LoadU(d, mean + i), hn::LoadU(d, raw + i), a);
    const auto square = hn::Mul(hn::Mul(g.e, g.e), g.precision);
    const auto gauss = hn::Add(hn::Add(hn::Set(d, kLog2Pi), g.logvar), square);
    const auto slope = hn::MulAdd(hn::Sub(one, a), hn::Add(one, a), hn::Set(d, 1e-10f));  // 1 - a^2 + 1e-10
    hn::StoreU(hn::NegMulAdd(hn::Set(d, 0.5f), gauss, hn::Neg(log(d, slope))), d, term + i);
  }
}

// Gradients for g = 1; overwrites mean and raw with them.
void density_gradient(float* mean, float* raw, const float* action, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.f);
  for (int64_t i = 0; i < n; i += lanes) {
    const Gaussian<decltype(d)> g(d, hn::LoadU(d, mean + i), hn::LoadU(d, raw + i), hn::LoadU(d, action + i));
    const auto scaled = hn::Mul(g.e, g.precision);
    const auto slope = hn::Mul(hn::Set(d, 3.5f), hn::NegMulAdd(g.t, g.t, one));  // 7/2 (1 - tanh^2)
    hn::StoreU(hn::Neg(scaled), d, mean + i);
    hn::StoreU(hn::Mul(hn::NegMulAdd(g.e, scaled, one), slope), d, raw + i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {

HWY_EXPORT(log_density);
HWY_EXPORT(density_gradient);

namespace {

constexpr int64_t kBlock = 1024;  // values per flat buffer, a multiple of every vector length
constexpr int64_t kPadding = 64;  // floats; the last vector may reach this far past the values

struct Buffers {
  alignas(64) float mean[kBlock + kPadding] = {}, raw[kBlock + kPadding] = {}, action[kBlock + kPadding] = {};
};

// Rows [begin, end), components [from, to): wide actions are taken in several strips.
void gather_block(Mat<const float> head, Mat<const float> action, Range rows, Range comps, Buffers& b) {
  int64_t at = 0;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const float *h = head.row(i), *a = action.row(i);
    for (int64_t k = comps.begin; k < comps.end; ++k, ++at) {
      b.mean[at] = h[k];
      b.raw[at] = h[action.cols + k];
      b.action[at] = a[k];
    }
  }
}

// Rows per block so that a block of all components fits, at least one row of a strip.
int64_t rows_per_block(int64_t width) { return std::max<int64_t>(1, kBlock / std::max<int64_t>(1, width)); }

template <class Body>
void for_blocks(Range rows, int64_t width, Body&& body) {
  const int64_t step = rows_per_block(width);
  for (int64_t i = rows.begin; i < rows.end; i += step) {
    for (int64_t k = 0; k < width; k += kBlock) {
      body(Range{i, std::min(rows.end, i + step)}, Range{k, std::min(width, k + kBlock)});
    }
  }
}

// Out-of-range actions make a NaN out of finite inputs; say so rather than blame the loss.
void check_actions(const PolicyNllForward& op) {
  if (std::isfinite(op.loss[0])) return;
  for (int64_t i = 0; i < op.action.rows; ++i) {
    for (int64_t k = 0; k < op.action.cols; ++k) {
      if (std::abs(op.action(i, k)) <= 1.f || !std::isfinite(op.action(i, k))) continue;
      fail(ErrorCode::NotFinite, "policy_nll_forward: action is {} in row {}, column {}, expected -1 to 1",
           op.action(i, k), i, k);
    }
  }
}

}  // namespace

void policy_nll_forward(Context& ctx, const PolicyNllForward& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(log_density);
  ScratchScope scope(ctx.scratch());
  const int64_t n = op.action.rows, width = op.action.cols, chunks = chunk_count(n, kPolicyRows);
  double* partials = ctx.scratch().take<double>(chunks, "policy_nll_forward");
  ctx.pool().parallel_for(chunks, [&](int64_t c, int) {
    const Range chunk = chunk_range(n, kPolicyRows, c);
    Buffers b;
    std::fill(op.log_prob.data + chunk.begin, op.log_prob.data + chunk.end, 0.f);
    for_blocks(chunk, width, [&](Range rows, Range comps) {
      gather_block(op.head, op.action, rows, comps, b);
      const int64_t wide = comps.end - comps.begin;
      run(b.mean, b.raw, b.action, b.mean, (rows.end - rows.begin) * wide);
      for (int64_t i = rows.begin, at = 0; i < rows.end; ++i) {
        for (int64_t k = 0; k < wide; ++k) op.log_prob[i] += b.mean[at++];
      }
    });
    double sum = 0;
    for (int64_t i = chunk.begin; i < chunk.end; ++i) {
      sum += static_cast<double>(op.weight[i]) * static_cast<double>(op.log_prob[i]);
    }
    partials[c] = sum;
  });
  double sum = 0;
  for (int64_t c = 0; c < chunks; ++c) sum += partials[c];
  op.loss[0] = static_cast<float>(-sum / static_cast<double>(n));
  check_actions(op);
  check_loss(ctx, "policy_nll_forward", op.loss,
             {{"head", op.head}, {"action", op.action}, {"weight", op.weight}});
}

void policy_nll_backward(Context& ctx, const PolicyNllBackward& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(density_gradient);
  const int64_t n = op.action.rows, width = op.action.cols;
  const float scale = op.d_loss[0] / static_cast<float>(n);
  ctx.pool().parallel_for(chunk_count(n, kPolicyRows), [&](int64_t c, int) {
    Buffers b;
    for_blocks(chunk_range(n, kPolicyRows, c), width, [&](Range rows, Range comps) {
      gather_block(op.head, op.action, rows, comps, b);
      const int64_t wide = comps.end - comps.begin;
      run(b.mean, b.raw, b.action, (rows.end - rows.begin) * wide);
      for (int64_t i = rows.begin, at = 0; i < rows.end; ++i) {
        const float g = scale * op.weight[i];
        float* d_head = op.d_head.row(i) + comps.begin;
        for (int64_t k = 0; k < wide; ++k, ++at) {
          d_head[k] = g * b.mean[at];
          d_head[width + k] = g * b.raw[at];
        }
      }
    });
  });
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
