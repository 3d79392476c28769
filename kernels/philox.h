// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>

#include "view.h"

namespace pwdice {

// Philox4x32-10 (Salmon et al., SC 2011): random bits as a function of key and counter, in both backends.
struct Philox {
  uint32_t v[4];
};

PWDICE_HD inline Philox philox4x32(uint64_t key, uint64_t hi, uint64_t lo) {
  uint32_t c0 = static_cast<uint32_t>(lo), c1 = static_cast<uint32_t>(lo >> 32);
  uint32_t c2 = static_cast<uint32_t>(hi), c3 = static_cast<uint32_t>(hi >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n1 = static_cast<uint32_t>(p1);
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1, n3 = static_cast<uint32_t>(p0);
    c0 = n0, c1 = n1, c2 = n2, c3 = n3;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// A named stream of random numbers: value i of step t is a function of (seed, stream, t, i) and of nothing
// else, so both backends draw the same bits and a resumed run continues exactly.
struct RandomStream {
  uint64_t seed = 0;
  uint64_t stream = 0;  // hash of the stream's name, host/rng.h

  PWDICE_HD Philox at(uint64_t step, uint64_t i) const { return philox4x32(seed ^ stream, step, i); }
};

PWDICE_HD inline float uniform01(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }  // [0, 1)

// Uniform on [0, n): the high word of a 64-bit product; the bias is below n / 2^64.
PWDICE_HD inline uint64_t uniform_below(uint32_t hi, uint32_t lo, uint64_t n) {
  const uint64_t bits = (static_cast<uint64_t>(hi) << 32) | lo;
#ifdef __CUDA_ARCH__
  return __umul64hi(bits, n);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(bits) * n) >> 64);
#endif
}

// A keyed permutation of [0, n): a Feistel network over the next power of two, walked until the value is in range
// (less than two walks on average). Shuffled passes over a data set need no stored permutation. Its rounds mix with
// two multiplications instead of a whole Philox: order needs to look random, not to resist an attacker.
struct Permutation {
  uint64_t key, n;
  int low_bits;
  uint64_t low_mask, high_mask;

  PWDICE_HD Permutation(uint64_t k, uint64_t count) : key(k), n(count) {
    int bits = 2;
    while (bits < 63 && (uint64_t{1} << bits) < n) ++bits;
    low_bits = bits - bits / 2;
    low_mask = (uint64_t{1} << low_bits) - 1;
    high_mask = (uint64_t{1} << (bits / 2)) - 1;
  }

  PWDICE_HD uint64_t operator()(uint64_t i) const {
    do {
      uint64_t high = i >> low_bits, low = i & low_mask;
      for (uint64_t round = 0; round < 8; round += 2) {
        high ^= mix(low, round) & high_mask;
        low ^= mix(high, round + 1) & low_mask;
      }
      i = (high << low_bits) | low;
    } while (i >= n);
    return i;
  }

 private:
  PWDICE_HD uint64_t mix(uint64_t value, uint64_t round) const {
    uint64_t x = (value ^ key) + round * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ull;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ull;
    return x >> 32;
  }
};

// How the draws of sample.h follow from a stream; each backend calls these and nothing else.

PWDICE_HD inline int32_t draw_uniform(const RandomStream& stream, uint64_t step, uint64_t i, uint64_t population) {
  const Philox bits = stream.at(step, i);
  return static_cast<int32_t>(uniform_below(bits.v[0], bits.v[1], population));
}

PWDICE_HD inline float draw_real(const RandomStream& stream, uint64_t step, uint64_t i) {
  return uniform01(stream.at(step, i).v[0]);
}

// The order of one shuffled pass. Draw number `count` of the endless sequence is
// pass_order(stream, count / population, population)(count % population).
PWDICE_HD inline Permutation pass_order(const RandomStream& stream, uint64_t pass, uint64_t population) {
  const Philox bits = stream.at(pass, ~uint64_t{0});
  return {(static_cast<uint64_t>(bits.v[1]) << 32) | bits.v[0], population};
}

// The first item whose cumulative weight exceeds u * total, u uniform on [0, 1) with 53 bits: u * total rounds to
// less than total, so there is one.
PWDICE_HD inline int32_t draw_weighted(const RandomStream& stream, uint64_t step, uint64_t i, const double* cumulative,
                                       int64_t population) {
  const Philox bits = stream.at(step, i);
  const uint64_t word = (static_cast<uint64_t>(bits.v[0]) << 32) | bits.v[1];
  const double target = static_cast<double>(word >> 11) * 0x1p-53 * cumulative[population - 1];
  // It is among `count` items from `first` on; halved without a branch, which would be mispredicted half of the time.
  const double* first = cumulative;
  for (int64_t count = population, half = 0; count > 1; count -= half) {
    half = count / 2;
    first += half * static_cast<int64_t>(first[half - 1] <= target);
  }
  return static_cast<int32_t>(first - cumulative);
}

}  // namespace pwdice
