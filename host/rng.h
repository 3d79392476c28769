// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string_view>

#include "../kernels/philox.h"
#include "arena.h"

namespace pwdice {

// The stream of a use ("batches", "mixing", "init/trunk.0.weight"): its name hashed (FNV-1a, then mixed), so
// adding a use does not move the others.
RandomStream random_stream(uint64_t seed, std::string_view name);

// The step number of a sampler, in the backend's memory: a captured step draws anew each time it is replayed.
class StepCounter {
 public:
  StepCounter() = default;
  explicit StepCounter(Context& ctx, uint64_t start = 0);

  Vec<const uint64_t> view() const { return value_.view(); }
  Vec<uint64_t> state() const { return value_.view(); }  // for checkpoints
  void advance(Context& ctx);                            // part of the step
  void set(Context& ctx, uint64_t step);
  uint64_t get(Context& ctx) const;  // reads back: not inside a step

 private:
  Array<uint64_t> value_;
};

}  // namespace pwdice
