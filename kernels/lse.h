// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cmath>

#include "view.h"

namespace pwdice {

// A partial logsumexp; stands for exp(m) * z. The default is the identity of +.
struct Lse {
  float m = -INFINITY, z = 0.f;
};

// Associative up to rounding; the order is fixed by the caller. NaN in gives NaN out.
PWDICE_HD inline Lse operator+(Lse a, Lse b) {
  const float m = fmaxf(a.m, b.m);
  const float c = fabsf(m) == INFINITY ? 0.f : m;  // two empty parts, or an infinite one: inf - inf would be NaN
  return {m, a.z * expf(a.m - c) + b.z * expf(b.m - c)};
}

PWDICE_HD inline float value(Lse a) { return a.m + logf(a.z); }

}  // namespace pwdice
