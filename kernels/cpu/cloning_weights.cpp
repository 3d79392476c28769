// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The weights of behaviour cloning on the CPU. Transitions are dealt out for the means, steps for the balance; the cut of
// a step is found by bisection on the bits of a float, 31 sums over its transitions, instead of sorting them.
// Cost      n (1 logarithm + lookahead + 32 additions)
// Numerics  sums in double and in order, so the bits do not depend on the threads; v relative to its step's largest, so
//           that a step whose weights are all tiny keeps their ratios.

#include <algorithm>
#include <cmath>

#include "../backends.h"
#include "../cloning_cut.h"
#include "parallel.h"

namespace pwdice::cpu {
namespace {

constexpr int64_t kTransitions = 2048, kSteps = 4;  // per chunk

// v of one step's transitions, in the order of `members`, and from there to w.
void balance_step(const CloningWeights& op, Vec<const int32_t> members, const float* mean, float* v) {
  const int64_t n = members.size;
  float top = -INFINITY;
  for (int64_t k = 0; k < n; ++k) {
    const float m = mean[members[k]];
    if (m > top || std::isnan(m)) top = m;
    if (std::isnan(top)) break;
  }
  for (int64_t k = 0; k < n; ++k) v[k] = cloning_value(mean[members[k]], top, op.power);
  const auto mass_from = [&](float t) {
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += v[k] >= t ? static_cast<double>(v[k]) : 0;
    return sum;
  };
  const float cut = cloning_cut(static_cast<double>(op.cap) * mass_from(0), mass_from);
  double total = 0;
  for (int64_t k = 0; k < n; ++k) total += static_cast<double>(v[k] > cut ? cut : v[k]);
  for (int64_t k = 0; k < n; ++k) {
    const float kept = v[k] > cut ? cut : v[k];
    op.w[members[k]] = total == 0 ? 0.f : static_cast<float>(static_cast<double>(kept) / total);
  }
}

template <class Body>
void for_each(Context& ctx, int64_t n, const Body& body) {
  ctx.pool().parallel_for(chunk_count(n, kTransitions), [&](int64_t chunk, int) {
    const Range range = chunk_range(n, kTransitions, chunk);
    for (int64_t i = range.begin; i < range.end; ++i) body(i);
  });
}

// w = v, not yet divided by the largest.
void shape(Context& ctx, const CloningWeights& op, Vec<float> top) {
  const char* name = "cloning_weights";
  const int64_t n = op.w.size;
  float* mean = ctx.scratch().take<float>(n, name);
  float* v = ctx.scratch().take<float>(n, name);
  float* const log_w = v;  // until v has values
  for_each(ctx, n, [&](int64_t i) { log_w[i] = cloning_log(op.w[i]); });
  for_each(ctx, n, [&](int64_t i) { mean[i] = cloning_mean(log_w, i, cloning_horizon(op, i)); });
  if (op.balanced) {
    const int64_t steps = op.step_begin.size - 1;
    ctx.pool().parallel_for(chunk_count(steps, kSteps), [&](int64_t chunk, int) {
      const Range range = chunk_range(steps, kSteps, chunk);
      for (int64_t t = range.begin; t < range.end; ++t) {
        const int64_t begin = op.step_begin[t], count = op.step_begin[t + 1] - begin;
        balance_step(op, op.order.slice(begin, count), mean, v + begin);
      }
    });
  } else {
    cpu::reduce_max(ctx, {{mean, n}, top});
    for_each(ctx, n, [&](int64_t i) { op.w[i] = cloning_value(mean[i], top[0], op.power); });
  }
}

}  // namespace

void cloning_weights(Context& ctx, const CloningWeights& op) {
  const ScratchScope scope(ctx.scratch());
  const Vec<float> top{ctx.scratch().take<float>(1, "cloning_weights"), 1};
  if (!op.changes_nothing()) shape(ctx, op, top);
  cpu::reduce_max(ctx, {op.w, top});
  for_each(ctx, op.w.size, [&](int64_t i) { op.w[i] = top[0] == 0.f ? 1.f : op.w[i] / top[0]; });
}

}  // namespace pwdice::cpu
