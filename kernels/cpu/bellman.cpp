// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The Bellman-flow term and the weights of behaviour cloning.
//
//   y_i = (v_i - discount_i v_next_i - u_i)/eps
//   L = eps D(y) - init_weight mean(v_init)        p = the derivative of D(y): divergence-inl.h
//   d_v = p     d_v_next = -discount p     d_u = -p     d_v_init = -init_weight/k
//   w_i = exp(y_i - max y)     chi2: relu(y_i)/max     exact chi2: relu(y_i + 1)/max
//
// Work     chunks of kDivergenceChunk values; d_v holds y, then p.
// Numerics v - discount v_next is one FMA, then a difference and a division. D relative to the largest y, its sums
//          double beyond 512 values; mean(v_init) in double. NaN reaches the loss; weights need a finite largest y.
// Cost     n exp. Bytes: 60 n for Kl (10 n floats read, 5 n written), 48 n for chi2, 20 n for the residual, 12 n for the
//          weights; memory bound when n is the whole data set.

#include "../backends.h"

// foreach_target.h includes this file once per target and must come before everything else of Highway.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bellman.cpp"
#include "hwy/foreach_target.h"
#include "divergence-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

void residual_range(const BellmanResidual& op, Range range) {
  const DivergenceTag d;
  for_vectors(range, [&](int64_t i, int64_t count) HWY_ATTR {
    const DivergenceVec next = load_some(op.v_next.data + i, count);
    const DivergenceVec flow =
        hn::NegMulAdd(load_some(op.discount.data + i, count), next, load_some(op.v.data + i, count));
    const DivergenceVec y = hn::Div(hn::Sub(flow, load_some(op.u.data + i, count)), hn::Set(d, op.eps));
    store_some(y, op.y.data + i, count);
  });
}

void residual(Context& ctx, const BellmanResidual& op) {
  ctx.pool().parallel_for(divergence_chunks(op.y.size), [&](int64_t chunk, int) HWY_ATTR {
    residual_range(op, chunk_range(op.y.size, kDivergenceChunk, chunk));
  });
}

void gradients_range(const Bellman& op, Range range) {
  for_vectors(range, [&](int64_t i, int64_t count) HWY_ATTR {
    const DivergenceVec minus_p = hn::Neg(load_some(op.d_v.data + i, count));
    store_some(minus_p, op.d_u.data + i, count);
    store_some(hn::Mul(minus_p, load_some(op.discount.data + i, count)), op.d_v_next.data + i, count);
  });
}

void term(Context& ctx, const Bellman& op) {
  const ScratchScope scope(ctx.scratch());
  const int64_t n = op.v.size;
  double* parts = ctx.scratch().take<double>(divergence_chunks(n), "bellman");
  residual(ctx, {op.v, op.v_next, op.u, op.discount, op.eps, op.d_v});
  const double value = divergence_in_place(ctx.pool(), op.divergence, op.d_v, parts);
  ctx.pool().parallel_for(divergence_chunks(n), [&](int64_t chunk, int) HWY_ATTR {
    gradients_range(op, chunk_range(n, kDivergenceChunk, chunk));
  });
  double init = 0;
  for (int64_t i = 0; i < op.v_init.size; ++i) init += static_cast<double>(op.v_init[i]);
  const double weight = static_cast<double>(op.init_weight) / static_cast<double>(op.v_init.size);
  std::fill_n(op.d_v_init.data, op.d_v_init.size, static_cast<float>(-weight));
  op.loss[0] = static_cast<float>(static_cast<double>(op.eps) * value - weight * init);
}

void weights(Context& ctx, const PolicyWeights& op) {
  const DivergenceTag d;
  const ScratchScope scope(ctx.scratch());
  const int64_t n = op.y.size;
  double* parts = ctx.scratch().take<double>(divergence_chunks(n), "policy_weights");
  for_chunks(ctx.pool(), n, parts,
             [&](Range range) HWY_ATTR { return static_cast<double>(range_max(op.y.data, range)); });
  const float max = merged_max(parts, divergence_chunks(n));
  if (!std::isfinite(max)) fail(ErrorCode::NotFinite, "policy_weights: the largest y is {}", max);
  const bool kl = op.divergence == Divergence::Kl;
  const float add = op.divergence == Divergence::Chi2Exact ? 1.f : 0.f, top = max + add;
  for_chunks(ctx.pool(), n, parts, [&](Range range) HWY_ATTR {
    for_vectors(range, [&](int64_t i, int64_t count) HWY_ATTR {
      const DivergenceVec y = load_some(op.y.data + i, count), zero = hn::Zero(d);
      DivergenceVec w = zero;
      if (kl) {
        w = exp_nonpositive(d, hn::Sub(y, hn::Set(d, max)));
      } else if (top > 0) {
        w = hn::Div(hn::Max(hn::Add(y, hn::Set(d, add)), zero), hn::Set(d, top));
      }
      store_some(w, op.w.data + i, count);
    });
    return 0.0;
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {
HWY_EXPORT(residual);
HWY_EXPORT(term);
HWY_EXPORT(weights);

void bellman(Context& ctx, const Bellman& op) { HWY_DYNAMIC_DISPATCH(term)(ctx, op); }
void bellman_residual(Context& ctx, const BellmanResidual& op) { HWY_DYNAMIC_DISPATCH(residual)(ctx, op); }
void policy_weights(Context& ctx, const PolicyWeights& op) { HWY_DYNAMIC_DISPATCH(weights)(ctx, op); }

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
