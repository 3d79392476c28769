// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "state_map.h"

#include <algorithm>
#include <cmath>

#include "../host/rng.h"
#include "../kernels/error.h"
#include "random_numbers.h"

namespace pwdice {

Normalizer Normalizer::identity(int64_t d) {
  return {std::vector<float>(d, 0.f), std::vector<float>(d, 1.f)};
}

// Two passes in double: the deviation of a large, nearly constant column survives.
Normalizer Normalizer::fit(const Transitions& data, const NormalizerOptions& options) {
  return fit(Mat<const float>(data.states.data(), data.size(), data.state_dim), options);
}

Normalizer Normalizer::fit(Mat<const float> rows, const NormalizerOptions& options) {
  const int64_t n = rows.rows, d = rows.cols;
  Normalizer out = identity(d);
  if (!options.enabled) return out;
  PWDICE_CHECK(n > 0, "normaliser: no states");
  PWDICE_CHECK(options.eps >= 0, "normaliser: eps is {}", options.eps);
  std::vector<double> mean(d, 0.0), square(d, 0.0);
  std::vector<uint8_t> varies(d, 0);
  for (int64_t i = 0; i < n; ++i) {
    const float* s = rows.row(i);
    for (int64_t k = 0; k < d; ++k) {
      mean[k] += static_cast<double>(s[k]);
      varies[k] |= s[k] != rows(0, k);
    }
  }
  for (double& m : mean) m /= static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    const float* s = rows.row(i);
    for (int64_t k = 0; k < d; ++k) {
      const double c = static_cast<double>(s[k]) - mean[k];
      square[k] += c * c;
    }
  }
  const double degrees = static_cast<double>(options.unbiased && n > 1 ? n - 1 : n);
  for (int64_t k = 0; k < d; ++k) {
    out.mean[k] = varies[k] ? static_cast<float>(mean[k]) : rows(0, k);
    if (varies[k]) out.scale[k] = static_cast<float>(std::sqrt(square[k] / degrees) + options.eps);
  }
  return out;
}

void Normalizer::apply(Mat<float> rows) const {
  PWDICE_CHECK(rows.cols == static_cast<int64_t>(mean.size()), "normaliser: {} columns, fitted to {}",
               rows.cols, mean.size());
  for (int64_t i = 0; i < rows.rows; ++i) {
    float* x = rows.row(i);
    for (int64_t k = 0; k < rows.cols; ++k) x[k] = (x[k] - mean[k]) / scale[k];
  }
}

Distortion Distortion::random(int64_t dim, double deviation, uint64_t seed) {
  Distortion out{dim, std::vector<float>(dim * dim)};
  RandomNumbers numbers(random_stream(seed, "distortion"));
  for (int64_t i = 0; i < dim; ++i) {
    for (int64_t j = 0; j < dim; ++j) {
      out.matrix[i * dim + j] = static_cast<float>((i == j ? 0.1 : 0.0) + deviation * numbers.normal());
    }
  }
  return out;
}

void Distortion::apply(Mat<float> rows) const {
  if (!enabled()) return;
  PWDICE_CHECK(rows.cols >= dim, "distortion: {} columns, the matrix has {}", rows.cols, dim);
  std::vector<float> old(dim);
  for (int64_t i = 0; i < rows.rows; ++i) {
    float* x = rows.row(i);
    std::copy_n(x, dim, old.begin());
    for (int64_t k = 0; k < dim; ++k) {
      double sum = 0;
      for (int64_t j = 0; j < dim; ++j)
        sum += static_cast<double>(matrix[k * dim + j]) * static_cast<double>(old[j]);
      x[k] = static_cast<float>(sum);
    }
  }
}

void StateMap::apply(Mat<const float> observations, Mat<float> states) const {
  PWDICE_CHECK(observations.cols == observation_dim() && states.cols == state_dim() &&
                   observations.rows == states.rows,
               "state map: {} x {} to {} x {}, made for {} and {} columns", observations.rows,
               observations.cols, states.rows, states.cols, observation_dim(), state_dim());
  for (int64_t i = 0; i < states.rows; ++i) {
    std::copy_n(observations.row(i), observations.cols, states.row(i));
    if (absorbing) states(i, observations.cols) = 0.f;
  }
  distortion.apply(states);
  normalizer.apply(states);
}

}  // namespace pwdice
