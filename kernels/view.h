// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__
#define PWDICE_HD __host__ __device__
#else
#define PWDICE_HD
#endif

namespace pwdice {

// Borrowed memory with a shape. Plain data: copied into kernels by value, owns nothing.
template <class T>
struct Vec {
  T* data = nullptr;
  int64_t size = 0;

  PWDICE_HD T& operator[](int64_t i) const { return data[i]; }
  PWDICE_HD Vec slice(int64_t begin, int64_t count) const { return {data + begin, count}; }
  PWDICE_HD operator Vec<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, size};
  }
};

// Row-major; `stride` is the distance between rows in elements (stride == cols when contiguous).
template <class T>
struct Mat {
  T* data = nullptr;
  int64_t rows = 0, cols = 0, stride = 0;

  Mat() = default;
  PWDICE_HD Mat(T* d, int64_t r, int64_t c) : data(d), rows(r), cols(c), stride(c) {}
  PWDICE_HD Mat(T* d, int64_t r, int64_t c, int64_t s) : data(d), rows(r), cols(c), stride(s) {}

  PWDICE_HD T& operator()(int64_t i, int64_t j) const { return data[i * stride + j]; }
  PWDICE_HD T* row(int64_t i) const { return data + i * stride; }
  PWDICE_HD Mat slice_rows(int64_t begin, int64_t count) const {
    return {data + begin * stride, count, cols, stride};
  }
  PWDICE_HD bool contiguous() const { return stride == cols || rows <= 1; }
  PWDICE_HD int64_t size() const { return rows * cols; }
  PWDICE_HD operator Mat<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, rows, cols, stride};
  }
};

}  // namespace pwdice
