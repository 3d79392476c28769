// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Floating-point behaviour of PTX on x86: bit casts, half types, rounding, min/max, conversions.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ptxcpu {

using u128 = unsigned __int128;

inline float as_f32(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline double as_f64(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline uint64_t bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// ---- half types --------------------------------------------------------------------------------

inline float half_to_float(uint16_t bits) { return _cvtsh_ss(bits); }
inline float bf16_to_float(uint16_t bits) { return as_f32(uint32_t(bits) << 16); }

// Rounds to odd, so that rounding the result again to a narrower type equals rounding once.
inline float to_float_odd(double value) {
  const float nearest = float(value);
  if (!std::isfinite(nearest) || double(nearest) == value) return nearest;
  uint32_t bits = bits_of(nearest);
  if (std::fabs(double(nearest)) > std::fabs(value)) --bits;
  return as_f32(bits | 1);
}
inline uint16_t to_half(double value) { return _cvtss_sh(to_float_odd(value), _MM_FROUND_TO_NEAREST_INT); }
inline uint16_t to_half_rz(double value) { return _cvtss_sh(to_float_odd(value), _MM_FROUND_TO_ZERO); }
inline uint16_t to_bf16(double value) {
  if (value != value) return 0x7fff;
  const uint32_t bits = bits_of(to_float_odd(value));
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline uint16_t to_bf16_rz(double value) {
  if (value != value) return 0x7fff;
  return uint16_t(bits_of(to_float_odd(value)) >> 16);
}
inline bool is_inf_or_nan(uint32_t bits) { return (bits & 0x7f800000u) == 0x7f800000u; }
inline uint32_t to_tf32_rna(float value) {
  const uint32_t bits = bits_of(value);
  return is_inf_or_nan(bits) ? bits : (bits + 0x1000) & 0xffffe000u;
}
inline uint32_t to_tf32_rn(float value) {
  const uint32_t bits = bits_of(value);
  return is_inf_or_nan(bits) ? bits : (bits + 0xfff + ((bits >> 13) & 1)) & 0xffffe000u;
}

// ---- modifiers ---------------------------------------------------------------------------------

inline float flush(float value) {  // .ftz
  const uint32_t bits = bits_of(value);
  return (bits & 0x7f800000u) ? value : as_f32(bits & 0x80000000u);
}
inline double flush(double value) {
  const uint64_t bits = bits_of(value);
  return (bits & 0x7ff0000000000000u) ? value : as_f64(bits & 0x8000000000000000u);
}
template <class T>
inline T saturate(T value) {  // .sat: NaN and -0 become +0
  return value > T(0) ? (value < T(1) ? value : T(1)) : T(0);
}
template <class T>
inline bool is_unordered(T a, T b) {
  return a != a || b != b;
}

// ---- directed rounding -------------------------------------------------------------------------
// Modes are MXCSR codes: 1 toward -inf, 2 toward +inf, 3 toward zero. pin() keeps the compiler
// from moving the operation out of the scope in which the mode is set.

class RoundingScope {
 public:
  explicit RoundingScope(unsigned mode) {
    asm volatile("stmxcsr %0" : "=m"(saved_)::"memory");
    const unsigned changed = (saved_ & ~0x6000u) | (mode << 13);
    asm volatile("ldmxcsr %0" ::"m"(changed) : "memory");
  }
  ~RoundingScope() { asm volatile("ldmxcsr %0" ::"m"(saved_) : "memory"); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  unsigned saved_ = 0;
};

template <class T>
inline T pin(T value) {
  asm volatile("" : "+x"(value)::"memory");
  return value;
}

template <int kMode, class T>
[[gnu::noinline]] T add_directed(T a, T b) {
  const RoundingScope scope(kMode);
  return pin(pin(a) + pin(b));
}
template <int kMode, class T>
[[gnu::noinline]] T sub_directed(T a, T b) {
  const RoundingScope scope(kMode);
  return pin(pin(a) - pin(b));
}
template <int kMode, class T>
[[gnu::noinline]] T mul_directed(T a, T b) {
  const RoundingScope scope(kMode);
  return pin(pin(a) * pin(b));
}
template <int kMode, class T>
[[gnu::noinline]] T div_directed(T a, T b) {
  const RoundingScope scope(kMode);
  return pin(pin(a) / pin(b));
}
template <int kMode, class T>
[[gnu::noinline]] T sqrt_directed(T a) {
  const RoundingScope scope(kMode);
  return pin(std::sqrt(pin(a)));
}
template <int kMode>
[[gnu::noinline]] float fma_directed(float a, float b, float c) {
  const RoundingScope scope(kMode);
  return pin(__builtin_fmaf(pin(a), pin(b), pin(c)));
}
template <int kMode>
[[gnu::noinline]] double fma_directed(double a, double b, double c) {
  const RoundingScope scope(kMode);
  return pin(__builtin_fma(pin(a), pin(b), pin(c)));
}
template <int kMode>
[[gnu::noinline]] float narrow_directed(double value) {
  const RoundingScope scope(kMode);
  return pin(float(pin(value)));
}

// ---- min and max: a NaN loses unless .NaN is given; -0 is below +0 --------------------------------

template <class T>
inline T float_min(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
inline T float_max(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <class T>
inline T float_min_nan(T a, T b) {
  return is_unordered(a, b) ? std::numeric_limits<T>::quiet_NaN() : float_min(a, b);
}
template <class T>
inline T float_max_nan(T a, T b) {
  return is_unordered(a, b) ? std::numeric_limits<T>::quiet_NaN() : float_max(a, b);
}

// ---- approximations: libm, more exact than the device's tables (about 2^-22 there) ---------------

inline float approx_ex2(float x) { return exp2f(x); }
inline float approx_lg2(float x) { return log2f(x); }
inline float approx_sin(float x) { return sinf(x); }
inline float approx_cos(float x) { return cosf(x); }
inline float approx_tanh(float x) { return tanhf(x); }
inline float approx_rsqrt(float x) { return float(1.0 / std::sqrt(double(x))); }
inline double approx_rsqrt(double x) { return 1.0 / std::sqrt(x); }

// ---- float to integer: clamps, and NaN gives 0 ----------------------------------------------------

template <class I>
inline I float_to_integer(double value) {
  constexpr I kLow = std::numeric_limits<I>::min(), kHigh = std::numeric_limits<I>::max();
  if (value != value) return 0;
  if (value <= double(kLow)) return kLow;
  if (value >= double(kHigh)) return kHigh;
  return I(value);
}

}  // namespace ptxcpu
