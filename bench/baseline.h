// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// What results and times are compared with: the formulas in double, loops in order, and dnnl_sgemm where the
// build found oneDNN.

#include <cmath>
#include <cstdint>
#include <new>
#include <random>
#include <span>
#include <vector>

#include "../kernels/activation.h"
#include "../kernels/view.h"

namespace pwdice::bench {

// Memory that begins with a cache line, like that of an arena. A vector's own begins anywhere, and a product whose
// vectors lie across two lines each takes 5 % longer.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  bool operator==(const LineAllocator&) const { return true; }
};
using Values = std::vector<float, LineAllocator<float>>;

template <class Vector = std::vector<float>>
Vector random_values(int64_t n, double deviation, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, deviation);
  Vector values(static_cast<size_t>(n));
  for (float& v : values) v = static_cast<float>(normal(generator));
  return values;
}

inline double activate(Activation act, double x) {
  return act == Activation::Tanh ? std::tanh(x) : act == Activation::Relu && x < 0 ? 0 : x;
}

inline double slope(Activation act, double y) {
  return act == Activation::Tanh ? 1 - y * y : act == Activation::Relu && y <= 0 ? 0 : 1;
}

// f(W x + b) for one row
inline std::vector<double> layer(Mat<const float> w, const float* b, const std::vector<double>& x,
                                 Activation act) {
  std::vector<double> y(static_cast<size_t>(w.rows));
  for (int64_t i = 0; i < w.rows; ++i) {
    double sum = static_cast<double>(b[i]);
    for (int64_t j = 0; j < w.cols; ++j) sum += static_cast<double>(w(i, j)) * x[static_cast<size_t>(j)];
    y[static_cast<size_t>(i)] = activate(act, sum);
  }
  return y;
}

// W^T y
inline std::vector<double> transposed(Mat<const float> w, const std::vector<double>& y) {
  std::vector<double> x(static_cast<size_t>(w.cols));
  for (int64_t i = 0; i < w.rows; ++i) {
    for (int64_t j = 0; j < w.cols; ++j)
      x[static_cast<size_t>(j)] += static_cast<double>(w(i, j)) * y[static_cast<size_t>(i)];
  }
  return x;
}

// |grad_x D|, D = w3 . f(W2 f(W1 x + b1) + b2), for one row
inline double gradient_norm(Mat<const float> w1, const float* b1, Mat<const float> w2, const float* b2,
                            Mat<const float> w3, const std::vector<double>& x, Activation act) {
  const auto h1 = layer(w1, b1, x, act), h2 = layer(w2, b2, h1, act);
  std::vector<double> u = transposed(w3, {1.0});
  for (size_t i = 0; i < u.size(); ++i) u[i] *= slope(act, h2[i]);
  u = transposed(w2, u);
  for (size_t i = 0; i < u.size(); ++i) u[i] *= slope(act, h1[i]);
  double squares = 0;
  for (const double g : transposed(w1, u)) squares += g * g;
  return std::sqrt(squares);
}

inline bool close(double got, double want, double scale, double tolerance = 1e-5) {
  return std::abs(got - want) <= tolerance * scale;  // false for NaN
}

}  // namespace pwdice::bench
