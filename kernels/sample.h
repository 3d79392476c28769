// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"
#include "philox.h"

namespace pwdice {

// Draws for one training step. `step` lives in the backend's memory, so that a captured step draws anew each
// time it is replayed; advance_counter ends the step.
struct SampleUniform {  // with replacement from [0, population)
  RandomStream stream;
  Vec<const uint64_t> step;  // (1)
  int64_t population;
  Vec<int32_t> index;  // out (n)
};
void sample_uniform(Context& ctx, const SampleUniform& op);

// Shuffled passes: draw number step * n + k of an endless sequence of permutations of [0, population).
struct SampleShuffled {
  RandomStream stream;
  Vec<const uint64_t> step;  // (1)
  int64_t population;
  Vec<int32_t> index;  // out (n)
};
void sample_shuffled(Context& ctx, const SampleShuffled& op);

// In proportion to weights, given as their cumulative sum (scan.h): the first i with cumulative_i > u * total.
// An item of weight zero is never drawn.
struct SampleWeighted {
  RandomStream stream;
  Vec<const uint64_t> step;         // (1)
  Vec<const double> cumulative;     // (population), non-decreasing, positive total
  Vec<int32_t> index;               // out (n)
};
void sample_weighted(Context& ctx, const SampleWeighted& op);

struct SampleReal {  // uniform on [0, 1)
  RandomStream stream;
  Vec<const uint64_t> step;  // (1)
  Vec<float> value;          // out (n)
};
void sample_real(Context& ctx, const SampleReal& op);

void advance_counter(Context& ctx, Vec<uint64_t> step);  // step_0 += 1

}  // namespace pwdice
