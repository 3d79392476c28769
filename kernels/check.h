// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The checks of kernels/<op>.cpp on one argument: its shape, its rows not overlapping, and memory behind it; a factor or
// divisor that is positive; a choice that is one of its values, which run from 0 to `last`.

#include <cmath>

#include "error.h"
#include "view.h"

namespace pwdice {

template <class T>
void check_matrix(const char* op, const char* name, const Mat<T>& m, int64_t rows, int64_t cols) {
  PWDICE_CHECK(m.rows == rows && m.cols == cols, "{}: {} is {} x {}, expected {} x {}", op, name, m.rows,
               m.cols, rows, cols);
  PWDICE_CHECK(m.stride >= m.cols, "{}: {} has {} columns but row stride {}", op, name, m.cols, m.stride);
  PWDICE_CHECK(m.data != nullptr || m.size() == 0, "{}: {} is null", op, name);
}

template <class T>
void check_vector(const char* op, const char* name, const Vec<T>& v, int64_t size) {
  PWDICE_CHECK(v.size == size, "{}: {} has {} values, expected {}", op, name, v.size, size);
  PWDICE_CHECK(v.data != nullptr || size == 0, "{}: {} is null", op, name);
}

// A number of rows or columns, whose product with another is no more bytes than can be counted.
inline constexpr int64_t kMostRows = int64_t{1} << 31, kMostColumns = int64_t{1} << 30;
inline void check_size(const char* op, const char* name, int64_t size, int64_t least = 0,
                       int64_t most = kMostRows) {
  PWDICE_CHECK(size >= least && size <= most, "{}: {} is {}, expected {} to {}", op, name, size, least, most);
}

inline void check_positive(const char* op, const char* name, float value) {
  PWDICE_CHECK(value > 0 && std::isnormal(value),
               "{}: {} is {}, expected a positive number, 1.2e-38 to 3.4e38", op, name, value);
}

template <class Enum>
void check_choice(const char* op, const char* name, Enum choice, Enum last) {
  const auto value = static_cast<int>(choice);
  PWDICE_CHECK(value >= 0 && value <= static_cast<int>(last), "{}: {} is {}, expected 0 to {}", op, name,
               value, static_cast<int>(last));
}

}  // namespace pwdice
