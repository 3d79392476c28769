// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Integer and bit-field operations of PTX.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ptxcpu {

template <class T>
inline T integer_min(T a, T b) {
  return a < b ? a : b;
}
template <class T>
inline T integer_max(T a, T b) {
  return a > b ? a : b;
}
// Division by zero is unspecified in PTX; devices return all ones. The quotient of the most
// negative number and -1 wraps.
template <class T>
inline T integer_div(T a, T b) {
  if (b == 0) return T(-1);
  if (std::is_signed_v<T> && b == T(-1)) return T(0 - std::make_unsigned_t<T>(a));
  return T(a / b);
}
template <class T>
inline T integer_rem(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == T(-1)) return 0;
  return T(a % b);
}
template <class To, class From>
inline To clamp_to(From value) {
  using Wide = __int128;
  const Wide low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  return To(std::max(low, std::min(high, Wide(value))));
}
template <class T>
inline T low_24(T value) {
  return T(T(std::make_unsigned_t<T>(value) << 8) >> 8);
}
template <class A, class B>
inline uint32_t dot_bytes(uint32_t a, uint32_t b, uint32_t sum) {
  for (int shift = 0; shift < 32; shift += 8)
    sum += uint32_t(int32_t(A(a >> shift)) * int32_t(B(b >> shift)));
  return sum;
}

// ---- shifts: amounts past the width clamp ----------------------------------------------------------

template <class T>
inline T shift_left(T value, uint32_t amount) {
  return amount >= sizeof(T) * 8 ? T(0) : T(value << amount);
}
template <class T>
inline T shift_right(T value, uint32_t amount) {
  if (amount >= sizeof(T) * 8) return value < 0 ? T(-1) : T(0);
  return T(value >> amount);
}
inline uint32_t funnel_shift(bool left, bool wrap, uint32_t low, uint32_t high, uint32_t amount) {
  const uint32_t n = wrap ? amount & 31 : std::min(amount, 32u);
  const uint64_t both = (uint64_t(high) << 32) | low;
  if (n == 32) return left ? low : high;
  return left ? uint32_t((both << n) >> 32) : uint32_t(both >> n);
}

// ---- bits ------------------------------------------------------------------------------------------

template <int kTable>
inline uint32_t logic3(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result = 0;
  for (int row = 0; row < 8; ++row) {
    if (!((kTable >> row) & 1)) continue;
    result |= ((row & 4) ? a : ~a) & ((row & 2) ? b : ~b) & ((row & 1) ? c : ~c);
  }
  return result;
}
inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = (uint64_t(b) << 32) | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t pick = (selector >> (4 * i)) & 15;
    uint32_t byte = uint32_t(bytes >> (8 * (pick & 7))) & 255;
    if (pick & 8) byte = (byte & 128) ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline uint32_t reverse_bits(uint32_t value) {
  value = ((value >> 1) & 0x55555555u) | ((value & 0x55555555u) << 1);
  value = ((value >> 2) & 0x33333333u) | ((value & 0x33333333u) << 2);
  value = ((value >> 4) & 0x0f0f0f0fu) | ((value & 0x0f0f0f0fu) << 4);
  return __builtin_bswap32(value);
}
inline uint64_t reverse_bits(uint64_t value) {
  return (uint64_t(reverse_bits(uint32_t(value))) << 32) | reverse_bits(uint32_t(value >> 32));
}
inline uint32_t leading_zeros(uint32_t value) { return value ? uint32_t(__builtin_clz(value)) : 32; }
inline uint32_t leading_zeros(uint64_t value) { return value ? uint32_t(__builtin_clzll(value)) : 64; }

// `width` ones from bit `start` upwards.
inline uint32_t bit_mask(bool wrap, uint32_t start, uint32_t width) {
  start = wrap ? start & 31 : std::min(start, 32u);
  width = wrap ? width & 31 : std::min(width, 32u);
  if (start >= 32) return 0;
  const uint64_t ones = (uint64_t(1) << width) - 1;
  return uint32_t(ones << start);
}
// Sign- or zero-extends the low `width` bits.
inline uint32_t extend_bits(bool is_signed, bool wrap, uint32_t value, uint32_t width) {
  width = wrap ? width & 31 : std::min(width, 32u);
  if (width == 0) return 0;
  if (width == 32) return value;
  const uint32_t mask = (1u << width) - 1;
  const bool negative = is_signed && ((value >> (width - 1)) & 1);
  return negative ? value | ~mask : value & mask;
}
template <class U>
inline U extract_field(U value, uint32_t position, uint32_t length, bool is_signed) {
  constexpr uint32_t kBits = sizeof(U) * 8;
  position &= 255;
  length &= 255;
  if (length == 0) return 0;
  const uint32_t top = std::min(position + length - 1, kBits - 1);
  const bool fill = is_signed && ((value >> top) & 1);
  const U shifted = position >= kBits ? U(0) : U(value >> position);
  const uint32_t kept = position >= kBits ? 0 : std::min(length, kBits - position);
  const U mask = kept >= kBits ? ~U(0) : U((U(1) << kept) - 1);
  return fill ? U(shifted | ~mask) : U(shifted & mask);
}
template <class U>
inline U insert_field(U field, U base, uint32_t position, uint32_t length) {
  constexpr uint32_t kBits = sizeof(U) * 8;
  position &= 255;
  length &= 255;
  if (length == 0 || position >= kBits) return base;
  const uint32_t kept = std::min(length, kBits - position);
  const U mask = (kept >= kBits ? ~U(0) : U((U(1) << kept) - 1)) << position;
  return U((base & ~mask) | ((field << position) & mask));
}
template <class U>
inline uint32_t find_top_bit(U value, bool is_signed, bool as_shift) {
  constexpr uint32_t kBits = sizeof(U) * 8;
  if (is_signed && (value >> (kBits - 1))) value = U(~value);
  if (value == 0) return 0xffffffffu;
  const uint32_t zeros = sizeof(U) == 8 ? leading_zeros(uint64_t(value)) : leading_zeros(uint32_t(value));
  return as_shift ? zeros : kBits - 1 - zeros;
}

}  // namespace ptxcpu
