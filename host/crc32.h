// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pwdice {

// CRC-32 with a reflected polynomial: 0xEDB88320 (IEEE, checkpoints) or 0x82F63B78 (Castagnoli, TensorBoard).
template <uint32_t kPolynomial>
uint32_t crc32(const void* data, size_t bytes, uint32_t seed = 0) {
  static constexpr std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? (c >> 1) ^ kPolynomial : c >> 1;
      table[i] = c;
    }
    return table;
  }();
  uint32_t c = ~seed;
  for (const auto* p = static_cast<const unsigned char*>(data); bytes-- > 0; ++p)
    c = kTable[(c ^ *p) & 255] ^ (c >> 8);
  return ~c;
}

inline uint32_t crc32_ieee(const void* data, size_t bytes, uint32_t seed = 0) {
  return crc32<0xEDB88320u>(data, bytes, seed);
}
inline uint32_t crc32_castagnoli(const void* data, size_t bytes) { return crc32<0x82F63B78u>(data, bytes); }

}  // namespace pwdice
