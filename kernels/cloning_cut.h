// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// What the two backends' cloning_weights share.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "view.h"

namespace pwdice {

inline constexpr float kCloningSmallest = 1.17549435e-38f;  // the smallest normal float
inline constexpr float kCloningSmallestLog =
    -87.3365448f;  // its logarithm: a weight that is not larger counts as zero

// log w, a zero counting as the smallest float; NaN stays.
PWDICE_HD inline float cloning_log(float w) { return w <= kCloningSmallest ? kCloningSmallestLog : logf(w); }

// The mean of log_w in [begin, end), or -infinity where nobody there has a weight.
PWDICE_HD inline float cloning_mean(const float* log_w, int64_t begin, int64_t end) {
  double sum = 0;
  bool any = false;
  for (int64_t j = begin; j < end; ++j) {
    sum += static_cast<double>(log_w[j]);
    any = any || !(log_w[j] <= kCloningSmallestLog);  // NaN counts
  }
  return any ? static_cast<float>(sum / static_cast<double>(end - begin)) : -INFINITY;
}

// v of a transition whose mean is m, relative to the largest mean `top`.
PWDICE_HD inline float cloning_value(float m, float top, float power) {
  return top == -INFINITY ? 0.f : expf(power * (m - top));
}

// The largest t for which the values in [0, 1] that are not below t hold at least `mass`: mass_from(t) is their sum,
// and never grows with t. Floats that are not negative are ordered like their bits.
template <class MassFrom>
PWDICE_HD inline float cloning_cut(double mass, MassFrom mass_from) {
  uint32_t low = 0, high = 0x3f800001u;  // just above 1
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    float t;
    memcpy(&t, &middle, sizeof t);
    if (mass_from(t) >= mass) {
      low = middle;
    } else {
      high = middle;
    }
  }
  float t;
  memcpy(&t, &low, sizeof t);
  return t;
}

}  // namespace pwdice
