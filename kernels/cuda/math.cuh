// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Functions of one number, written once for the kernels and the epilogues. NaN in gives NaN out.

#include "../activation.h"

namespace pwdice::cuda {

__device__ __forceinline__ float relu(float x) { return x < 0.f ? 0.f : x; }
__device__ __forceinline__ float step(float x) { return x != x ? x : (x > 0.f ? 1.f : 0.f); }
__device__ __forceinline__ float softplus(float x) { return fmaxf(x, 0.f) + log1pf(expf(-fabsf(x))); }
__device__ __forceinline__ float sigmoid(float x) {
  const float e = expf(-fabsf(x));  // never overflows; both tails keep their relative accuracy
  return (x >= 0.f ? 1.f : e) / (1.f + e);
}

__device__ __forceinline__ float activate(Activation act, float x) {
  switch (act) {
    case Activation::Relu:
      return relu(x);
    case Activation::Tanh:
      return tanhf(x);
    default:
      return x;
  }
}

// f'(pre) through y = f(pre).
__device__ __forceinline__ float derivative(Activation act, float y) {
  switch (act) {
    case Activation::Relu:
      return step(y);
    case Activation::Tanh:
      return 1.f - y * y;
    default:
      return 1.f;
  }
}

// d f'(pre) through y = f(pre). A unit that is off passes nothing, not even an infinite d.
__device__ __forceinline__ float through(Activation act, float y, float d) {
  if (act == Activation::Relu && y <= 0.f) return 0.f;
  return d * derivative(act, y);
}

// f''(pre) through y = f(pre).
__device__ __forceinline__ float second_derivative(Activation act, float y) {
  return act == Activation::Tanh ? -2.f * y * (1.f - y * y) : 0.f;
}

}  // namespace pwdice::cuda
