// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The last n < Lanes(d) values of an array, and loops that end in such a tail. Nothing is read or written
// past the end on any target; missing lanes are zero. Include after hwy/highway.h in a file that uses
// foreach_target.

#if defined(PWDICE_KERNELS_CPU_TAIL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_TAIL_INL_H_
#undef PWDICE_KERNELS_CPU_TAIL_INL_H_
#else
#define PWDICE_KERNELS_CPU_TAIL_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Where masked loads and stores of 32-bit and 64-bit lanes are one instruction that leaves the others alone.
// (HWY_MEM_OPS_MIGHT_FAULT is stricter: AVX2 has none for smaller lanes.)
#undef PWDICE_MASKED_MEMORY
#if HWY_TARGET <= HWY_AVX2  // or any AVX-512: a better target has a lower bit
#define PWDICE_MASKED_MEMORY 1
#else
#define PWDICE_MASKED_MEMORY 0
#endif

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_n(D d, const T* from, size_t n) {
  static_assert(sizeof(T) >= 4);
#if PWDICE_MASKED_MEMORY
  return hn::MaskedLoad(hn::FirstN(d, n), d, from);
#else
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  std::memcpy(lanes, from, n * sizeof(T));
  return hn::Load(d, lanes);
#endif
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_n(hn::Vec<D> v, D d, T* to, size_t n) {
  static_assert(sizeof(T) >= 4);
#if PWDICE_MASKED_MEMORY
  hn::BlendedStore(v, hn::FirstN(d, n), d, to);
#else
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, lanes);
  std::memcpy(to, lanes, n * sizeof(T));
#endif
}

// y_i = f(x_i)
template <class F>
HWY_INLINE void map(const float* x, float* y, int64_t n, F f) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  const auto rest = static_cast<size_t>(n - i);
  if (rest > 0) store_n(f(d, load_n(d, x + i, rest)), d, y + i, rest);
}

// y_i = f(a_i, b_i)
template <class F>
HWY_INLINE void map(const float* a, const float* b, float* y, int64_t n, F f) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  const auto rest = static_cast<size_t>(n - i);
  if (rest > 0) store_n(f(d, load_n(d, a + i, rest), load_n(d, b + i, rest)), d, y + i, rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
