// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// A draw is a function of (stream, step, position) alone: philox.h says which. Chunks only divide the work.
#include <cmath>

#include "../backends.h"
#include "parallel.h"

namespace pwdice::cpu {
namespace {

constexpr int64_t kDraws = 256;  // two to four microseconds of work

template <class Body>
void for_draws(Context& ctx, int64_t n, Body&& body) {
  ctx.pool().parallel_for(chunk_count(n, kDraws), [&](int64_t c, int) {
    const Range r = chunk_range(n, kDraws, c);
    for (int64_t i = r.begin; i < r.end; ++i) body(i);
  });
}

}  // namespace

void sample_uniform(Context& ctx, const SampleUniform& op) {
  const auto population = static_cast<uint64_t>(op.population);
  for_draws(ctx, op.index.size, [&](int64_t i) {
    op.index[i] = draw_uniform(op.stream, op.step[0], static_cast<uint64_t>(i), population);
  });
}

void sample_shuffled(Context& ctx, const SampleShuffled& op) {
  const auto population = static_cast<uint64_t>(op.population), n = static_cast<uint64_t>(op.index.size);
  ctx.pool().parallel_for(chunk_count(op.index.size, kDraws), [&](int64_t c, int) {
    const Range r = chunk_range(op.index.size, kDraws, c);
    const uint64_t first = op.step[0] * n + static_cast<uint64_t>(r.begin);
    uint64_t pass = first / population, position = first % population;
    Permutation order = pass_order(op.stream, pass, population);
    for (int64_t i = r.begin; i < r.end; ++i) {
      op.index[i] = static_cast<int32_t>(order(position));
      if (++position == population) {
        position = 0;
        order = pass_order(op.stream, ++pass, population);
      }
    }
  });
}

void sample_weighted(Context& ctx, const SampleWeighted& op) {
  const double total = op.cumulative[op.cumulative.size - 1];
  PWDICE_CHECK(total > 0 && std::isfinite(total),
               "sample_weighted: the weights sum to {}, expected a positive number", total);
  for_draws(ctx, op.index.size, [&](int64_t i) {
    op.index[i] = draw_weighted(op.stream, op.step[0], static_cast<uint64_t>(i), op.cumulative.data,
                                op.cumulative.size);
  });
}

void sample_real(Context& ctx, const SampleReal& op) {
  for_draws(ctx, op.value.size,
            [&](int64_t i) { op.value[i] = draw_real(op.stream, op.step[0], static_cast<uint64_t>(i)); });
}

void advance_counter(Context&, Vec<uint64_t> step) { ++step[0]; }

}  // namespace pwdice::cpu
