// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The convex conjugates of the dual: what a vector of residuals y contributes to the loss and its slope.
//   Kl         L = eps (log sum_i exp y_i - log n)        slope p_i = exp(y_i) / sum exp y
//   Chi2       L = eps/n sum_i (y_i + 1)^2 / 2            slope (y_i + 1)/n
//   Chi2Exact  L = eps/n sum_i relu(y_i + 1)^2 / 2 - 1/2  slope relu(y_i + 1)/n

#include <cmath>

#include "../transport.h"
#include "reduce.cuh"

namespace pwdice::cuda {

template <class Residual>
struct LoadLseOf {
  Residual y;
  __device__ Lse operator()(int64_t i) const { return {y(i), 1.f}; }
};

template <class Residual>
struct LoadConjugate {
  Residual y;
  bool exact;
  __device__ float operator()(int64_t i) const {
    const float value = y(i);
    const float t = exact && value < -1.f ? 0.f : value + 1.f;
    return 0.5f * t * t - (exact ? 0.5f : 0.f);
  }
};

// The total a slope is relative to; `offset` is another term of the loss, or null.
struct StoreKl {
  float eps, log_n;
  Lse* total;
  const float* offset;
  Vec<float> loss;
  __device__ void operator()(Lse sum) const {
    *total = sum;
    loss[0] = eps * (value(sum) - log_n) + (offset == nullptr ? 0.f : *offset);
  }
};
struct StoreChi2 {
  double scale;  // eps / n
  const float* offset;
  Vec<float> loss;
  __device__ void operator()(double sum) const {
    loss[0] = static_cast<float>(scale * sum + (offset == nullptr ? 0.0 : static_cast<double>(*offset)));
  }
};

__device__ inline float slope(Divergence divergence, float y, const Lse* total, float inv_n) {
  switch (divergence) {
    case Divergence::Kl:
      return expf(y - total->m) / total->z;
    case Divergence::Chi2:
      return (y + 1.f) * inv_n;
    default:
      return (y < -1.f ? 0.f : y + 1.f) * inv_n;
  }
}

template <class Residual>
void fold_conjugate(const Launch& on, Divergence divergence, int64_t n, Residual y, float eps, Lse* total,
                    const float* offset, Vec<float> loss) {
  if (divergence == Divergence::Kl) {
    fold<LseFold>(on, n, LoadLseOf<Residual>{y},
                  StoreKl{eps, std::log(static_cast<float>(n)), total, offset, loss});
  } else {
    fold<SumFold>(on, n, LoadConjugate<Residual>{y, divergence == Divergence::Chi2Exact},
                  StoreChi2{static_cast<double>(eps) / static_cast<double>(n), offset, loss});
  }
}

}  // namespace pwdice::cuda
