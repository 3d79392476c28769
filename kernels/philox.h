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

// A keyed permutation of [0, n): a balanced Feistel network over the next even power of two, walked until the
// value is in range. Shuffled passes over a data set need no stored permutation.
PWDICE_HD inline uint64_t permute(uint64_t key, uint64_t n, uint64_t i) {
  int bits = 2;
  while ((uint64_t{1} << bits) < n) bits += 2;
  const int half = bits / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = i >> half, right = i & mask;
    for (int round = 0; round < 6; ++round) {
      const uint64_t f = philox4x32(key, static_cast<uint64_t>(round), right).v[0] & mask;
      const uint64_t next = left ^ f;
      left = right, right = next;
    }
    i = (left << half) | right;
  } while (i >= n);
  return i;
}

}  // namespace pwdice
