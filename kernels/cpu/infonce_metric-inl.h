// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The (d, d) matrix between the embeddings of InfoNCE, for any Highway target: d^3 work beside n^2 d of the scores,
// summed in double by loops that a compiler turns into vectors.
//
//   M = F F^T with F = softplus(W0) or W0, or W0 itself, or I
//   d_F = (d_M + d_M^T) F, d_W0 = d_F, times sigmoid(W0) where F is the softplus

#if defined(PWDICE_KERNELS_CPU_INFONCE_METRIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_INFONCE_METRIC_INL_H_
#undef PWDICE_KERNELS_CPU_INFONCE_METRIC_INL_H_
#else
#define PWDICE_KERNELS_CPU_INFONCE_METRIC_INL_H_
#endif

#include <algorithm>

#include "../infonce.h"
#include "tail-inl.h"
#include "vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

inline constexpr int64_t kInfoNceMaxWidth = 128;

// <a, b> in double; d is a multiple of 8, and eight chains vectorise.
inline double dot_double(const float* a, const float* b, int64_t d) {
  double part[8] = {}, sum = 0;
  for (int64_t k = 0; k < d; k += 8) {
    for (int64_t c = 0; c < 8; ++c) part[c] += static_cast<double>(a[k + c]) * static_cast<double>(b[k + c]);
  }
  for (const double p : part) sum += p;
  return sum;
}

// M(W0); `m` and `factor`, which keeps F for the gradient, are contiguous (d, d).
inline void score_metric(ScoreMetric metric, Mat<const float> w0, float* factor, float* m) {
  const int64_t d = w0.rows;
  for (int64_t i = 0; i < d; ++i) {
    float* const row = factor + i * d;
    if (metric == ScoreMetric::SoftplusGram) {
      map(w0.row(i), row, d, [](auto tag, auto x) HWY_ATTR { return softplus(tag, x); });
    } else {
      std::copy_n(w0.row(i), d, row);
    }
    if (metric == ScoreMetric::Plain) {
      std::copy_n(row, d, m + i * d);
    } else if (metric == ScoreMetric::Identity) {
      std::fill_n(m + i * d, d, 0.f);
      m[i * d + i] = 1.f;
    } else {
      for (int64_t j = 0; j <= i; ++j) {
        m[i * d + j] = m[j * d + i] = static_cast<float>(dot_double(row, factor + j * d, d));
      }
    }
  }
}

// d_W0 from d_M (contiguous).
inline void score_metric_backward(ScoreMetric metric, Mat<const float> w0, const float* factor,
                                  const double* d_m, Mat<float> d_w0) {
  const int64_t d = w0.rows;
  float slope[kInfoNceMaxWidth];
  std::fill_n(slope, d, 1.f);
  for (int64_t i = 0; i < d; ++i) {
    double g[kInfoNceMaxWidth] = {};
    if (metric == ScoreMetric::Plain) {
      std::copy_n(d_m + i * d, d, g);
    } else if (metric != ScoreMetric::Identity) {
      for (int64_t j = 0; j < d; ++j) {
        const double both = d_m[i * d + j] + d_m[j * d + i];
        for (int64_t k = 0; k < d; ++k) g[k] += both * static_cast<double>(factor[j * d + k]);
      }
    }
    if (metric == ScoreMetric::SoftplusGram) {
      map(w0.row(i), slope, d, [](auto tag, auto x) HWY_ATTR { return sigmoid(tag, x); });
    }
    for (int64_t k = 0; k < d; ++k) d_w0(i, k) = static_cast<float>(g[k] * static_cast<double>(slope[k]));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
