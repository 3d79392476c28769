// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// From stored numbers to numbers in memory, for hdf5_file.cpp alone.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "hdf5_object.h"

namespace pwdice::hdf5 {

// In the machine's byte order, to T. False when a value does not fit.
template <class Stored, class T>
bool convert_values(const std::byte* from, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    Stored value;
    std::memcpy(&value, from + i * static_cast<int64_t>(sizeof value), sizeof value);
    if constexpr (std::is_integral_v<Stored> && std::is_integral_v<T>) {
      if (!std::in_range<T>(value)) return false;
    } else if constexpr (std::is_same_v<Stored, double> && std::is_same_v<T, float>) {
      if (std::isfinite(value) && std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()))
        return false;
    }
    to[i] = static_cast<T>(value);
  }
  return true;
}

template <class T>
bool convert(const Encoding& encoding, std::byte* from, T* to, int64_t n) {
  const int64_t item = static_cast<int64_t>(encoding.item);
  for (int64_t i = 0; encoding.swapped && i < n; ++i) std::reverse(from + i * item, from + (i + 1) * item);
  if (encoding.type == Hdf5Type::Float) {
    if constexpr (std::is_floating_point_v<T>) {
      return item == 4 ? convert_values<float>(from, to, n) : convert_values<double>(from, to, n);
    }
    return false;
  }
  switch (item * 2 + (encoding.is_signed ? 1 : 0)) {
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

// Whether stored values are T's own representation: read straight into place.
template <class T>
bool is_plain(const Encoding& encoding) {
  if (encoding.swapped || encoding.item != sizeof(T)) return false;
  if (std::is_floating_point_v<T>) return encoding.type == Hdf5Type::Float;
  return encoding.type != Hdf5Type::Float && encoding.is_signed == std::is_signed_v<T>;
}

}  // namespace pwdice::hdf5
