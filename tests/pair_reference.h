// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The cost between states as one would write it on paper, for the tests of pairwise_cost and transport.

#include <cmath>

#include "../kernels/pairwise_cost.h"
#include "reference.h"

namespace pwdice::reference {

inline constexpr Distance kDistances[] = {Distance::SquaredEuclidean, Distance::Euclidean,
                                          Distance::Manhattan,        Distance::ExpManhattan,
                                          Distance::Cosine,           Distance::Indicator};

template <class T>
T distance(Distance kind, const Matrix<T>& x, int64_t i, const Matrix<T>& y, int64_t j) {
  T squares = 0, absolute = 0, dot = 0, xx = 0, yy = 0;
  bool equal = true;
  for (int64_t k = 0; k < x.cols; ++k) {
    const T a = x(i, k), b = y(j, k), t = a - b;
    squares += t * t, absolute += std::abs(t), dot += a * b, xx += a * a, yy += b * b;
    equal = equal && a == b;
  }
  switch (kind) {
    case Distance::SquaredEuclidean:
      return squares;
    case Distance::Euclidean:
      return std::sqrt(squares);
    case Distance::Manhattan:
      return absolute;
    case Distance::ExpManhattan:
      return std::exp(absolute) - 1;
    case Distance::Cosine:
      return 1 - dot / std::max(std::sqrt(xx) * std::sqrt(yy), T(1e-6));
    case Distance::Indicator:
      return equal ? T(0) : T(1);
  }
  return 0;
}

template <class T>
Matrix<T> cost_matrix(Distance kind, T beta, const Matrix<T>& x, const Matrix<T>& y,
                      const std::vector<T>& reward) {
  Matrix<T> c(x.rows, y.rows);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < y.rows; ++j) {
      c(i, j) = beta * distance(kind, x, i, y, j) - reward[static_cast<size_t>(i)];
    }
  }
  return c;
}

}  // namespace pwdice::reference
