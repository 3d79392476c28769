// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cmath>
#include <numbers>

#include "../kernels/philox.h"

namespace pwdice {

// A sequence of random numbers on the host for making data: the same on every machine with IEEE arithmetic up
// to the last bits of log and cos. Training draws on the backend instead, with kernels/sample.h.
class RandomNumbers {
 public:
  explicit RandomNumbers(RandomStream stream) : stream_(stream) {}

  double uniform() {  // (0, 1)
    const Philox bits = stream_.at(0, count_++);
    const uint64_t wide = (static_cast<uint64_t>(bits.v[0]) << 32 | bits.v[1]) >> 12;
    return (static_cast<double>(wide) + 0.5) * 0x1p-52;
  }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int64_t below(int64_t n) {
    const Philox bits = stream_.at(0, count_++);
    return static_cast<int64_t>(uniform_below(bits.v[0], bits.v[1], static_cast<uint64_t>(n)));
  }
  double normal() {  // standard normal, Box and Muller's transform
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  RandomStream stream_;
  uint64_t count_ = 0;
};

}  // namespace pwdice
