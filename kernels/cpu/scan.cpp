// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Cumulative sum: each chunk sums itself, the chunk totals are added up in order, then each chunk writes
// offset + its own running sum. A non-decreasing result needs no care: rounding is monotone, and the last
// value of a chunk is exactly the next chunk's offset. Quantiles: selection on a copy; ranks do not depend on
// the order in which equal values stood.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "../backends.h"
#include "parallel.h"

namespace pwdice::cpu {

void cumulative_sum(Context& ctx, const CumulativeSum& op) {
  ScratchScope scope(ctx.scratch());
  const int64_t n = op.x.size, chunks = chunk_count(n, kScanChunk);
  double* offset = ctx.scratch().take<double>(chunks, "cumulative_sum");
  ctx.pool().parallel_for(chunks, [&](int64_t c, int) {
    const Range r = chunk_range(n, kScanChunk, c);
    double sum = 0;
    for (int64_t i = r.begin; i < r.end; ++i) op.y[i] = sum += static_cast<double>(op.x[i]);
    offset[c] = sum;
  });
  double before = 0;
  for (int64_t c = 0; c < chunks; ++c) before += std::exchange(offset[c], before);
  ctx.pool().parallel_for(chunks, [&](int64_t c, int) {
    const Range r = chunk_range(n, kScanChunk, c);
    for (int64_t i = r.begin; i < r.end; ++i) op.y[i] += offset[c];
  });
}

void quantiles(Context& ctx, const Quantiles& op) {
  ScratchScope scope(ctx.scratch());
  const int64_t n = op.x.size;
  float* sorted = ctx.scratch().take<float>(n, "quantiles");
  std::copy_n(op.x.data, n, sorted);
  // NaN has no rank and would break the order that selection relies on.
  if (std::any_of(sorted, sorted + n, [](float v) { return std::isnan(v); })) {
    return cpu::fill(ctx, op.result, std::numeric_limits<float>::quiet_NaN());
  }
  for (int64_t k = 0; k < op.p.size; ++k) {
    float* at = sorted + quantile_rank(op.p[k], n);
    std::nth_element(sorted, at, sorted + n);
    op.result[k] = *at;
  }
}

}  // namespace pwdice::cpu
