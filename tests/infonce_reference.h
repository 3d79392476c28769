// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// InfoNCE with its whole score matrix and the chain rule step by step, in float or double.

#include <cmath>
#include <vector>

#include "../kernels/infonce.h"
#include "reference.h"

namespace pwdice::test {

using reference::Matrix;

struct Options {
  ScoreMetric metric = ScoreMetric::SoftplusGram;
  bool normalise = true;
  float inv_tau = 1.f;
};

template <class T>
struct Result {
  T loss;
  std::vector<T> lse;
  Matrix<T> d_v1, d_v2, d_w0;
};

template <class T>
std::vector<T> inverse_norms(const Matrix<T>& v, bool normalise) {
  std::vector<T> inv;
  for (int64_t i = 0; i < v.rows; ++i) {
    T squares = 0;
    for (int64_t k = 0; k < v.cols; ++k) squares += v(i, k) * v(i, k);
    inv.push_back(!normalise ? T(1) : squares > 0 ? 1 / std::sqrt(squares) : T(0));
  }
  return inv;
}

template <class T>
Matrix<T> scaled_rows(Matrix<T> v, const std::vector<T>& s) {
  for (int64_t i = 0; i < v.rows; ++i) {
    for (int64_t k = 0; k < v.cols; ++k) v(i, k) *= s[static_cast<size_t>(i)];
  }
  return v;
}

template <class T>
Matrix<T> through_norm(const Matrix<T>& z, const std::vector<T>& inv, Matrix<T> d_z, bool normalise) {
  if (!normalise) return d_z;
  for (int64_t i = 0; i < z.rows; ++i) {
    T along = 0;
    for (int64_t k = 0; k < z.cols; ++k) along += z(i, k) * d_z(i, k);
    for (int64_t k = 0; k < z.cols; ++k) {
      d_z(i, k) = (d_z(i, k) - z(i, k) * along) * inv[static_cast<size_t>(i)];
    }
  }
  return d_z;
}

template <class T>
Matrix<T> factor(const Matrix<T>& w0, ScoreMetric metric) {
  Matrix<T> f = w0;
  if (metric == ScoreMetric::SoftplusGram) {
    for (T& v : f.data) v = reference::softplus(v);
  }
  return f;
}

template <class T>
Matrix<T> metric_matrix(const Matrix<T>& w0, ScoreMetric metric) {
  if (metric == ScoreMetric::Plain) return w0;
  if (metric == ScoreMetric::Identity) {
    Matrix<T> one(w0.rows, w0.cols);
    for (int64_t i = 0; i < w0.rows; ++i) one(i, i) = 1;
    return one;
  }
  const Matrix<T> f = factor(w0, metric);
  return reference::product(f, reference::transpose(f));
}

template <class T>
Matrix<T> metric_gradient(const Matrix<T>& w0, ScoreMetric metric, const Matrix<T>& d_m) {
  if (metric == ScoreMetric::Plain) return d_m;
  if (metric == ScoreMetric::Identity) return Matrix<T>(w0.rows, w0.cols);
  Matrix<T> both = reference::transpose(d_m);
  for (size_t i = 0; i < both.data.size(); ++i) both.data[i] += d_m.data[i];
  Matrix<T> d_w0 = reference::product(both, factor(w0, metric));
  if (metric == ScoreMetric::SoftplusGram) {
    for (size_t i = 0; i < d_w0.data.size(); ++i) d_w0.data[i] *= reference::sigmoid(w0.data[i]);
  }
  return d_w0;
}

template <class T>
Result<T> infonce(const Matrix<T>& v1, const Matrix<T>& v2, const Matrix<T>& w0, const Options& o) {
  const int64_t n = v1.rows;
  const T tau = static_cast<T>(o.inv_tau);
  const auto inv1 = inverse_norms(v1, o.normalise), inv2 = inverse_norms(v2, o.normalise);
  const Matrix<T> z1 = scaled_rows(v1, inv1), z2 = scaled_rows(v2, inv2), m = metric_matrix(w0, o.metric);
  Matrix<T> g = reference::product(reference::product(z1, m), reference::transpose(z2));
  Result<T> r{};
  for (int64_t i = 0; i < n; ++i) {
    std::vector<T> row;
    for (int64_t j = 0; j < n; ++j) row.push_back(g(i, j) * tau);
    const T lse = reference::logsumexp(row), own = row[static_cast<size_t>(i)];
    r.lse.push_back(lse);
    T others = 0;  // 1 - p_ii, without the rounding of that difference
    for (int64_t j = 0; j < n; ++j) {
      const T p = std::exp(row[static_cast<size_t>(j)] - lse);
      g(i, j) = p * tau / static_cast<T>(n);
      if (j != i) others += p;
    }
    g(i, i) = -others * tau / static_cast<T>(n);
    r.loss += (own == lse ? others : lse - own) / static_cast<T>(n);
  }
  const Matrix<T> a = reference::product(g, z2), mt = reference::transpose(m);
  r.d_v1 = through_norm(z1, inv1, reference::product(a, mt), o.normalise);
  r.d_v2 = through_norm(z2, inv2, reference::product(reference::transpose(g), reference::product(z1, m)),
                        o.normalise);
  r.d_w0 = metric_gradient(w0, o.metric, reference::product(reference::transpose(z1), a));
  return r;
}

}  // namespace pwdice::test
