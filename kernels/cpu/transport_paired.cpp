// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The reference implementation's transport estimate: row i of the states meets row i of the expert states.
//
//   y_i = (a_i + b_i - c_ii)/eps     L = eps D(y)     d_a = d_b = the derivative of D (divergence-inl.h)
//
// Numerics the direct form of the distance, y in float, D relative to the largest y with sums in double beyond 512
//          values. A y of -inf has p = 0; NaN reaches the loss.
// Cost     3 n d flop for the cost, n exp. Reads 2 n d floats, and n of a, b and the reward; d_a, the only working
//          memory (it holds c, y, then p), is written four times and read five times for Kl; d_b is a copy of it.

#include "../backends.h"

// foreach_target.h includes this file once per target and must come before everything else of Highway.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/transport_paired.cpp"
#include "hwy/foreach_target.h"
#include "divergence-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

// y_i in place of the cost c_i.
void exponents(Range range, const float* a, const float* b, float eps, float* c) {
  const DivergenceTag d;
  for_vectors(range, [&](int64_t i, int64_t count) HWY_ATTR {
    const DivergenceVec potential = hn::Add(load_some(a + i, count), load_some(b + i, count));
    store_some(hn::Div(hn::Sub(potential, load_some(c + i, count)), hn::Set(d, eps)), c + i, count);
  });
}

void transport_rows(Context& ctx, const TransportPaired& op) {
  const char* name = "transport_paired";
  const ScratchScope scope(ctx.scratch());
  const int64_t n = op.a.size;
  double* parts = ctx.scratch().take<double>(divergence_chunks(n), name);
  cpu::cost_paired(ctx, {op.cost, op.d_a});
  ctx.pool().parallel_for(divergence_chunks(n), [&](int64_t chunk, int) HWY_ATTR {
    exponents(chunk_range(n, kDivergenceChunk, chunk), op.a.data, op.b.data, op.eps, op.d_a.data);
  });
  const double value = divergence_in_place(ctx.pool(), op.divergence, op.d_a, parts);
  op.loss[0] = static_cast<float>(static_cast<double>(op.eps) * value);
  std::copy_n(op.d_a.data, n, op.d_b.data);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {
HWY_EXPORT(transport_rows);

void transport_paired(Context& ctx, const TransportPaired& op) {
  HWY_DYNAMIC_DISPATCH(transport_rows)(ctx, op);
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
