// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The oracle: the formulas as one would write them on paper, loops in order, templates over the scalar. With
// double they are the truth, with float the "plain float code" whose error sets the tolerance. References
// that only one op needs stand in that op's test.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "../kernels/activation.h"

namespace pwdice::reference {

template <class T>
T softplus(T x) {
  return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
}

template <class T>
T sigmoid(T x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

template <class T>
T sum(const std::vector<T>& x) {
  T total = 0;
  for (T v : x) total += v;
  return total;
}

template <class T>
T dot(const std::vector<T>& a, const std::vector<T>& b) {
  T total = 0;
  for (size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

// -infinity for an empty x.
template <class T>
T logsumexp(const std::vector<T>& x) {
  T max = -std::numeric_limits<T>::infinity();
  for (T v : x) max = v > max || std::isnan(v) ? v : max;
  if (max == -std::numeric_limits<T>::infinity()) return max;
  T total = 0;
  for (T v : x) total += std::exp(v - max);
  return max + std::log(total);
}

// A contiguous row-major matrix.
template <class T>
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<T> data;

  Matrix() = default;
  Matrix(int64_t r, int64_t c) : rows(r), cols(c), data(static_cast<size_t>(r * c)) {}
  template <class U>
  Matrix(int64_t r, int64_t c, const std::vector<U>& values)
      : rows(r), cols(c), data(values.begin(), values.end()) {}
  T& operator()(int64_t i, int64_t j) { return data[static_cast<size_t>(i * cols + j)]; }
  T operator()(int64_t i, int64_t j) const { return data[static_cast<size_t>(i * cols + j)]; }
};

template <class T>
Matrix<T> transpose(const Matrix<T>& a) {
  Matrix<T> t(a.cols, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) t(j, i) = a(i, j);
  }
  return t;
}

template <class T>
Matrix<T> product(const Matrix<T>& a, const Matrix<T>& b) {
  Matrix<T> c(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.cols; ++j) {
      T total = 0;
      for (int64_t k = 0; k < a.cols; ++k) total += a(i, k) * b(k, j);
      c(i, j) = total;
    }
  }
  return c;
}

template <class T>
T activate(Activation act, T x) {
  switch (act) {
    case Activation::None:
      return x;
    case Activation::Relu:
      return x < 0 ? T(0) : x;
    case Activation::Tanh:
      return std::tanh(x);
  }
  return x;
}

// f'(pre) through y = f(pre).
template <class T>
T activation_slope(Activation act, T y) {
  switch (act) {
    case Activation::None:
      return 1;
    case Activation::Relu:
      return y > 0 ? T(1) : T(0);
    case Activation::Tanh:
      return 1 - y * y;
  }
  return 1;
}

// y = f(x W^T + b), W is (out, in).
template <class T>
Matrix<T> linear(const Matrix<T>& x, const Matrix<T>& w, const std::vector<T>& b, Activation act) {
  Matrix<T> y = product(x, transpose(w));
  for (int64_t i = 0; i < y.rows; ++i) {
    for (int64_t j = 0; j < y.cols; ++j) y(i, j) = activate(act, y(i, j) + b[static_cast<size_t>(j)]);
  }
  return y;
}

}  // namespace pwdice::reference
