// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "scan.h"

#include <algorithm>

#include "backends.h"

namespace pwdice {

size_t scan_scratch_bytes(int64_t n) {
  const int64_t chunks = (n + kScanChunk - 1) / kScanChunk;
  const size_t cpu =
      std::max(static_cast<size_t>(chunks) * sizeof(double), static_cast<size_t>(n) * sizeof(float));
  return std::max(Scratch::rounded(cpu), cuda::scan_scratch_bytes(n));
}

void cumulative_sum(Context& ctx, const CumulativeSum& op) {
  PWDICE_CHECK(op.x.size == op.y.size, "cumulative_sum: x has {} values, y has {}", op.x.size, op.y.size);
  ctx.on_gpu() ? cuda::cumulative_sum(ctx, op) : cpu::cumulative_sum(ctx, op);
}

void quantiles(Context& ctx, const Quantiles& op) {
  PWDICE_CHECK(op.p.size == op.result.size, "quantiles: p has {} values, result has {}", op.p.size,
               op.result.size);
  PWDICE_CHECK(op.x.size > 0 || op.p.size == 0, "quantiles: x is empty");
  for (int64_t k = 0; k < op.p.size; ++k) {
    PWDICE_CHECK(op.p[k] >= 0.f && op.p[k] <= 1.f, "quantiles: p {} is {}, expected 0 to 1", k, op.p[k]);
  }
  ctx.on_gpu() ? cuda::quantiles(ctx, op) : cpu::quantiles(ctx, op);
}

}  // namespace pwdice
