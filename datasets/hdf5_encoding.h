// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// How numbers are stored and what they become in memory, for hdf5_*.cpp alone.

#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "hdf5_file.h"

namespace pwdice::hdf5 {

// How the values of an array are encoded: the standard IEEE and two's complement types in either byte order.
struct Encoding {
  Hdf5Type type = Hdf5Type::Float;
  int64_t item = 0;
  bool is_signed = false, swapped = false;
};

// Values as stored, in the machine's byte order, to T. False when one does not fit.
template <class Stored, class T>
bool convert_values(const std::byte* from, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    Stored value;
    std::memcpy(&value, from + i * static_cast<int64_t>(sizeof value), sizeof value);
    if constexpr (std::is_integral_v<Stored> && std::is_integral_v<T>) {
      if (!std::in_range<T>(value)) return false;
    } else if constexpr (std::is_same_v<Stored, double> && std::is_same_v<T, float>) {
      if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()) && std::isfinite(value))
        return false;
    }
    to[i] = static_cast<T>(value);
  }
  return true;
}

template <class T>
bool convert(const Encoding& encoding, const std::byte* from, T* to, int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    return encoding.item == 4 ? convert_values<float>(from, to, n) : convert_values<double>(from, to, n);
  } else {
    switch (encoding.item * 2 + (encoding.is_signed ? 1 : 0)) {
      case 2:
        return convert_values<uint8_t>(from, to, n);
      case 3:
        return convert_values<int8_t>(from, to, n);
      case 4:
        return convert_values<uint16_t>(from, to, n);
      case 5:
        return convert_values<int16_t>(from, to, n);
      case 8:
        return convert_values<uint32_t>(from, to, n);
      case 9:
        return convert_values<int32_t>(from, to, n);
      case 16:
        return convert_values<uint64_t>(from, to, n);
      default:
        return convert_values<int64_t>(from, to, n);
    }
  }
}

template <class T>
bool same_encoding(const Encoding& encoding) {
  if (encoding.swapped || encoding.item != static_cast<int64_t>(sizeof(T))) return false;
  if (std::is_floating_point_v<T>) return encoding.type == Hdf5Type::Float;
  return encoding.type != Hdf5Type::Float && encoding.is_signed == std::is_signed_v<T>;
}

inline void swap_bytes(std::byte* data, int64_t item, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::reverse(data + i * item, data + (i + 1) * item);
}

Encoding encoding_of(hid_t type, const std::string& where);  // throws BadFile for any other type

}  // namespace pwdice::hdf5
