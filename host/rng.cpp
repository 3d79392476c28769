// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "rng.h"

#include "../kernels/sample.h"
#include "tensor.h"

namespace pwdice {

RandomStream random_stream(uint64_t seed, std::string_view name) {
  uint64_t h = 0xCBF29CE484222325ull;  // FNV-1a
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  // The last characters of a short name reach only the low bits; splitmix64's finaliser spreads them.
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
  return {seed, h ^ (h >> 31)};
}

StepCounter::StepCounter(Context& ctx, uint64_t start) : value_(ctx, 1) { set(ctx, start); }

void StepCounter::advance(Context& ctx) { advance_counter(ctx, value_.view()); }

void StepCounter::set(Context& ctx, uint64_t step) { upload(ctx, value_.view(), {&step, 1}); }

uint64_t StepCounter::get(Context& ctx) const { return download(ctx, view())[0]; }

}  // namespace pwdice
