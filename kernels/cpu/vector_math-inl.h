// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Elementary functions on SIMD vectors of float, for any Highway target. Include after hwy/highway.h in a
// file that uses foreach_target; call as exp(d, x).
//
//   exp(x)              e^x for every x: subnormal results, 0 and +inf included      <= 1.2 ulp
//   exp_nonpositive(x)  e^x for x <= 0, the softmax case: the limit costs one        <= 1.2 ulp
//                       instruction, results below about 2^-126 are 0
//   exp2_nonpositive(x) 2^x in the same way, x up to 64 besides: scores in units     <= 1.2 ulp
//                       of log 2 need no scaling; exp2_nonpositive<k>(x) 2^k 2^x
//   log(x)              -inf at 0, NaN below 0, subnormal x included                 <= 1 ulp
//   tanh(x)             exact sign, +-1 in the limit, relative accuracy near 0       <= 3 ulp
//   sigmoid(x)          relative accuracy in both tails, 0 below about -87.7         <= 3 ulp
//   softplus(x)         log(1 + e^x) without overflow, relative accuracy for x << 0  <= 2 ulp
//
// NaN in gives NaN out. The bounds are asserted over the whole range by tests/vector_math_test.cpp.
//
// e^x = 2^n e^r with n = round(x / log 2) and |r| <= log(2)/2. Adding 1.5 * 2^23 leaves n in the low bits of
// the sum, so rounding costs nothing beyond the FMA that scales x. The polynomials are minimax fits made for
// this file (relative error 3e-9 for e^r and 2^r, 1.3e-8 for e^r - 1, 6e-9 for log(1 + f)). log 2 is split in
// two, the first part with so few bits that n times it is exact without FMA as well.

#if defined(PWDICE_KERNELS_CPU_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_VECTOR_MATH_INL_H_
#undef PWDICE_KERNELS_CPU_VECTOR_MATH_INL_H_
#else
#define PWDICE_KERNELS_CPU_VECTOR_MATH_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace math {

constexpr float kLog2e = 1.44269504f;
constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
constexpr float kRound = 12582912.f;  // 1.5 * 2^23

// max(low, x) and min(high, x) that keep a NaN. The x86 instructions return their second operand when one is
// NaN; elsewhere the number wins, so a comparison has to choose.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
template <class D, class V = hn::Vec<D>>
HWY_INLINE V at_least(D d, float low, V x) {
  return hn::Max(hn::Set(d, low), x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V at_most(D d, float high, V x) {
  return hn::Min(hn::Set(d, high), x);
}
#else
template <class D, class V = hn::Vec<D>>
HWY_INLINE V at_least(D d, float low, V x) {
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, low)), hn::Set(d, low), x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V at_most(D d, float high, V x) {
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, high)), hn::Set(d, high), x);
}
#endif

// x - n log 2
template <class D, class V = hn::Vec<D>>
HWY_INLINE V minus_ln2(D d, V n, V x) {
  const V r = hn::NegMulAdd(n, hn::Set(d, kLn2High), x);
  return hn::NegMulAdd(n, hn::Set(d, kLn2Low), r);
}

// e^r on |r| <= log(2)/2
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_reduced(D d, V r) {
  V p = hn::Set(d, 0.0013814467f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.0083687808f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.041668393f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.1666652f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.f));
  return hn::MulAdd(p, r, hn::Set(d, 1.f));
}

// log(1 + f) on sqrt(1/2) - 1 <= f <= sqrt(2) - 1, split as f - (f^2/2 - f^3 Q(f)): the first term is exact.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_correction(D d, V f) {
  V q = hn::Set(d, -0.076344974f);
  q = hn::MulAdd(q, f, hn::Set(d, 0.12761578f));
  q = hn::MulAdd(q, f, hn::Set(d, -0.13160183f));
  q = hn::MulAdd(q, f, hn::Set(d, 0.14201757f));
  q = hn::MulAdd(q, f, hn::Set(d, -0.16623357f));
  q = hn::MulAdd(q, f, hn::Set(d, 0.20001227f));
  q = hn::MulAdd(q, f, hn::Set(d, -0.2500082f));
  q = hn::MulAdd(q, f, hn::Set(d, 0.33333331f));
  const V f2 = hn::Mul(f, f);
  return hn::MulSub(hn::Mul(f2, f), q, hn::Mul(f2, hn::Set(d, 0.5f)));
}

// log(1 + e) on 0 <= e <= 1
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_unit(D d, V e) {
  const auto halve = hn::Gt(e, hn::Set(d, 0.41421356f));  // 1 + e = 2 (1 + (e - 1)/2)
  const V f = hn::IfThenElse(halve, hn::MulSub(e, hn::Set(d, 0.5f), hn::Set(d, 0.5f)), e);
  const V base = hn::IfThenElseZero(halve, hn::Set(d, 0.693147181f));
  return hn::Add(base, hn::Add(f, log1p_correction(d, f)));
}

}  // namespace math

// For x <= 0 (in fact x < 88). At n = -127 the biased exponent is zero, so the clamp alone makes the limit
// exact.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_nonpositive(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = math::at_least(d, -88.f, x);
  const V round = hn::Set(d, math::kRound + 127.f);
  const V t = hn::MulAdd(x, hn::Set(d, math::kLog2e), round);
  const V r = math::minus_ln2(d, hn::Sub(t, round), x);
  const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, t)));
  return hn::Mul(math::exp_reduced(d, r), scale);
}

// p 2^n with n = round(x), and x - n; 0 from -126 (AVX-512) or -126.5 on down. AVX-512 has an instruction for each
// step, of which the last leaves out the masked lanes: a fifth less time than the way of the other functions.
#if HWY_TARGET <= HWY_AVX3  // any AVX-512: a better target has a lower bit
template <class D, class V = hn::Vec<D>>
struct BinaryExponent {
  static_assert(sizeof(V) == sizeof(__m512));
  V x, n;

  HWY_INLINE BinaryExponent(D, V value) : x(value), n{_mm512_roundscale_ps(value.raw, _MM_FROUND_NO_EXC)} {}
  HWY_INLINE V rest() const { return hn::Sub(x, n); }
  HWY_INLINE V scale(D d, V p) const {
    const __mmask16 normal = _mm512_cmp_ps_mask(x.raw, hn::Set(d, -126.f).raw, _CMP_NLT_UQ);  // or NaN
    return V{_mm512_maskz_scalef_ps(normal, p.raw, n.raw)};
  }
};
#else
template <class D, class V = hn::Vec<D>>
struct BinaryExponent {
  V x, t;

  HWY_INLINE BinaryExponent(D d, V value) : x(math::at_least(d, -127.f, value)), t(hn::Add(x, bias(d))) {}
  HWY_INLINE V rest() const { return hn::Sub(x, hn::Sub(t, bias(D()))); }
  HWY_INLINE V scale(D d, V p) const {
    return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(hn::RebindToSigned<D>(), t))));
  }

 private:
  static HWY_INLINE V bias(D d) { return hn::Set(d, math::kRound + 127.f); }
};
#endif

// The reduction is exact and needs no FMA. 2^kScale costs nothing: the coefficients have it.
template <int kScale = 0, class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_nonpositive(D d, V x) {
  static_assert(kScale >= 0 && kScale < 63);
  constexpr float kUnit = static_cast<float>(int64_t{1} << kScale);
  const BinaryExponent<D> exponent(d, x);
  const V r = exponent.rest();
  V p = hn::Set(d, kUnit * 0.00015353259f);
  p = hn::MulAdd(p, r, hn::Set(d, kUnit * 0.0013399003f));
  p = hn::MulAdd(p, r, hn::Set(d, kUnit * 0.0096184388f));
  p = hn::MulAdd(p, r, hn::Set(d, kUnit * 0.05550332f));
  p = hn::MulAdd(p, r, hn::Set(d, kUnit * 0.24022648f));
  p = hn::MulAdd(p, r, hn::Set(d, kUnit * 0.69314718f));
  p = hn::MulAdd(p, r, hn::Set(d, kUnit));
  return exponent.scale(d, p);
}

// 2^n is applied as two factors: n reaches 128 and -150, beyond the exponents of a float.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = math::at_most(d, 89.f, math::at_least(d, -105.f, x));
  const V round = hn::Set(d, math::kRound);
  const V t = hn::MulAdd(x, hn::Set(d, math::kLog2e), round);
  const V r = math::minus_ln2(d, hn::Sub(t, round), x);
  const auto n = hn::Sub(hn::BitCast(di, t), hn::BitCast(di, round));
  const auto half = hn::ShiftRight<1>(n);
  const auto bias = hn::Set(di, 127);
  const V scale1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V scale2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(n, half), bias)));
  return hn::Mul(hn::Mul(math::exp_reduced(d, r), scale1), scale2);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto subnormal = hn::Lt(x, hn::Set(d, 1.17549435e-38f));
  const V scaled = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 8388608.f)), x);
  const auto bits = hn::BitCast(di, scaled);
  const auto exponent =
      hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));  // sqrt(1/2) <= m < sqrt(2)
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const V n = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(subnormal, hn::Set(d, 23.f)));
  const V f = hn::Sub(m, hn::Set(d, 1.f));
  const V small = hn::MulAdd(n, hn::Set(d, math::kLn2Low), math::log1p_correction(d, f));
  V y = hn::MulAdd(n, hn::Set(d, math::kLn2High), hn::Add(f, small));
  const V inf = hn::Inf(d), zero = hn::Zero(d);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), y);
  y = hn::IfThenElse(hn::Lt(x, zero), hn::NaN(d), y);
  return hn::IfThenElse(hn::Lt(x, inf), y, hn::Add(x, inf));  // +inf and NaN
}

// E = e^{2|x|} - 1 = 2^n (e^r - 1) + (2^n - 1) has no cancellation for n >= 0; tanh|x| = E / (E + 2).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V a = math::at_most(d, 10.f, hn::Abs(x));  // tanh is 1 to the last bit from 9.01 on
  const V two_a = hn::Add(a, a);
  const V round = hn::Set(d, math::kRound + 127.f);
  const V t = hn::MulAdd(two_a, hn::Set(d, math::kLog2e), round);
  const V r = math::minus_ln2(d, hn::Sub(t, round), two_a);
  const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, t)));
  V p = hn::Set(d, 0.001388251f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.0083665801f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.041667201f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.16666543f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999997f));
  p = hn::MulAdd(hn::Mul(p, r), r, r);
  const V e = hn::MulAdd(p, scale, hn::Sub(scale, hn::Set(d, 1.f)));
  return hn::CopySign(hn::Div(e, hn::Add(e, hn::Set(d, 2.f))), x);
}

// With e = exp(-|x|): 1 / (1 + e) for x >= 0, e / (1 + e) otherwise.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.f);
  const V e = exp_nonpositive(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

// max(x, 0) + log(1 + exp(-|x|))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V softplus(D d, V x) {
  const V e = exp_nonpositive(d, hn::Neg(hn::Abs(x)));
  return hn::Add(math::at_least(d, 0.f, x), math::log1p_unit(d, e));
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
