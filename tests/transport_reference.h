// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The transport terms with the whole cost matrix in memory, as one would write them on paper.

#include <cmath>
#include <limits>
#include <vector>

#include "../kernels/transport.h"
#include "pair_reference.h"

namespace pwdice::reference {

template <class T>
struct TransportInputs {
  Matrix<T> c;
  std::vector<T> a, b, q;
  T eps;
};

template <class T>
struct TransportResult {
  T loss = 0;
  std::vector<T> d_a, d_b, col_lse;
};

template <class T>
T log_weight(T q) {
  return q > 0 ? std::log(q) : -std::numeric_limits<T>::infinity();
}

template <class T>
TransportResult<T> joint(const TransportInputs<T>& in) {
  const int64_t n = in.c.rows, m = in.c.cols;
  std::vector<T> s;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      s.push_back((in.a[size_t(i)] + in.b[size_t(j)] - in.c(i, j)) / in.eps + log_weight(in.q[size_t(j)]));
    }
  }
  const T lse = logsumexp(s);
  TransportResult<T> r;
  r.loss = in.eps * (lse - std::log(static_cast<T>(n)));
  r.d_a.resize(size_t(n)), r.d_b.resize(size_t(m));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      const T p = std::exp(s[size_t(i * m + j)] - lse);
      r.d_a[size_t(i)] += p, r.d_b[size_t(j)] += p;
    }
  }
  return r;
}

template <class T>
TransportResult<T> semidual(const TransportInputs<T>& in) {
  const int64_t n = in.c.rows, m = in.c.cols;
  TransportResult<T> r;
  r.d_a.resize(size_t(n));
  for (int64_t j = 0; j < m; ++j) {
    std::vector<T> s;
    for (int64_t i = 0; i < n; ++i) s.push_back((in.a[size_t(i)] - in.c(i, j)) / in.eps);
    const T lse = logsumexp(s);
    r.col_lse.push_back(lse - std::log(static_cast<T>(n)));
    r.loss += in.eps * in.q[size_t(j)] * r.col_lse.back();
    for (int64_t i = 0; i < n; ++i) r.d_a[size_t(i)] += in.q[size_t(j)] * std::exp(s[size_t(i)] - lse);
  }
  return r;
}

template <class T>
TransportResult<T> chi2(const TransportInputs<T>& in, Divergence divergence) {
  const int64_t n = in.c.rows, m = in.c.cols;
  TransportResult<T> r;
  r.d_a.resize(size_t(n)), r.d_b.resize(size_t(m));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      const T w = in.q[size_t(j)] / static_cast<T>(n);
      T t = (in.a[size_t(i)] + in.b[size_t(j)] - in.c(i, j)) / in.eps + 1, value = t * t / 2;
      if (divergence == Divergence::Chi2Exact) t = std::max(t, T(0)), value = t * t / 2 - T(0.5);
      r.loss += in.eps * w * value;
      r.d_a[size_t(i)] += w * t, r.d_b[size_t(j)] += w * t;
    }
  }
  return r;
}

template <class T>
TransportResult<T> paired(const TransportInputs<T>& in, Divergence divergence) {
  const int64_t n = in.c.rows;
  std::vector<T> y;
  for (int64_t i = 0; i < n; ++i) y.push_back((in.a[size_t(i)] + in.b[size_t(i)] - in.c(i, i)) / in.eps);
  const T lse = logsumexp(y), count = static_cast<T>(n);
  TransportResult<T> r;
  for (T v : y) {
    T t = v + 1, value = t * t / 2;
    if (divergence == Divergence::Chi2Exact) t = std::max(t, T(0)), value = t * t / 2 - T(0.5);
    r.loss += in.eps * value / count;
    r.d_a.push_back(divergence == Divergence::Kl ? std::exp(v - lse) : t / count);
  }
  if (divergence == Divergence::Kl) r.loss = in.eps * (lse - std::log(count));
  r.d_b = r.d_a;
  return r;
}

}  // namespace pwdice::reference
