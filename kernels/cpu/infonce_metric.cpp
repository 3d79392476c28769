// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The (d, d) matrix between the embeddings. d^3 work beside n^2 d of the scores: plain loops in double.
#include "infonce_metric.h"

#include <algorithm>
#include <cmath>

namespace pwdice::cpu {
namespace {

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

}  // namespace

void score_metric(ScoreMetric metric, Mat<const float> w0, float* factor, float* m) {
  const int64_t d = w0.rows;
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      factor[i * d + j] = metric == ScoreMetric::SoftplusGram
                              ? static_cast<float>(softplus(static_cast<double>(w0(i, j))))
                              : w0(i, j);
    }
  }
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      if (metric == ScoreMetric::Plain) {
        m[i * d + j] = w0(i, j);
      } else if (metric == ScoreMetric::Identity) {
        m[i * d + j] = i == j ? 1.f : 0.f;
      } else {
        double sum = 0;
        for (int64_t k = 0; k < d; ++k) {
          sum += static_cast<double>(factor[i * d + k]) * static_cast<double>(factor[j * d + k]);
        }
        m[i * d + j] = static_cast<float>(sum);
      }
    }
  }
}

void score_metric_backward(ScoreMetric metric, Mat<const float> w0, const float* factor, const double* d_m,
                           Mat<float> d_w0) {
  const int64_t d = w0.rows;
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t k = 0; k < d; ++k) {
      double g = 0;
      if (metric == ScoreMetric::Plain) {
        g = d_m[i * d + k];
      } else if (metric != ScoreMetric::Identity) {
        for (int64_t j = 0; j < d; ++j) {
          g += (d_m[i * d + j] + d_m[j * d + i]) * static_cast<double>(factor[j * d + k]);
        }
        if (metric == ScoreMetric::SoftplusGram) g *= sigmoid(static_cast<double>(w0(i, k)));
      }
      d_w0(i, k) = static_cast<float>(g);
    }
  }
}

}  // namespace pwdice::cpu
