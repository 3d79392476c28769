// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The activations and their derivatives on SIMD vectors, with f' written through y = f(pre):
//   None  y = pre            f' = 1
//   Relu  y = max(pre, 0)    f' = 1[y > 0]
//   Tanh                     f' = 1 - y^2

#if defined(PWDICE_KERNELS_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_ACTIVATION_INL_H_
#undef PWDICE_KERNELS_CPU_ACTIVATION_INL_H_
#else
#define PWDICE_KERNELS_CPU_ACTIVATION_INL_H_
#endif

#include "../activation.h"
#include "gemm_tile-inl.h"
#include "vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

template <Activation kAct>
HWY_INLINE Floats activate(Floats pre) {
  const FloatTag d;
  if constexpr (kAct == Activation::Relu) return math::at_least(d, 0.f, pre);
  if constexpr (kAct == Activation::Tanh) return tanh(d, pre);
  return pre;
}

// v f'. For ReLU a selection, not a product: what is switched off is 0 even where v is infinite. NaN in y stays NaN.
template <Activation kAct>
HWY_INLINE Floats times_slope(Floats v, Floats y) {
  const FloatTag d;
  if constexpr (kAct == Activation::Relu)
    return hn::IfThenElse(hn::Gt(y, hn::Zero(d)), v, math::at_least(d, 0.f, y));
  if constexpr (kAct == Activation::Tanh) return hn::Mul(v, hn::NegMulAdd(y, y, hn::Set(d, 1.f)));
  return v;
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
