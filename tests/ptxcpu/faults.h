// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// A kernel with one planted bug at a time; kNone is correct.
#pragma once

#include <cuda_runtime_api.h>

namespace faults {

enum class Bug {
  kNone,
  kReadPastEnd,           // global read one element past the allocation
  kWritePastEnd,          // global write there
  kNullPointer,           // read through a null pointer
  kMisaligned,            // float4 load at an address that is not a multiple of 16
  kMissingBarrier,        // shared memory read without __syncthreads() after the writes
  kMissingBarrierBefore,  // shared memory overwritten while other warps may still read it
  kMissingSyncwarp,       // the same within a warp
  kUninitializedShared,   // read of shared memory nobody wrote
  kSharedPastEnd,         // dynamic shared memory overrun by one element
  kMissingAsyncWait,      // cp.async without cp.async.wait_group
  kPartialShuffle,        // full-mask shuffle in a branch half the warp takes
  kShuffleAfterExit,      // full-mask shuffle after lanes have returned
  kDivergentBarrier,      // two different __syncthreads() in the branches of an if
  kBarrierAfterExit,      // __syncthreads() after threads have returned
  kBlocksRace,            // plain += to one word from all blocks
  kUninitializedGlobal,   // read of device memory nobody wrote
  kAssert,                // device assert
  kEndlessWait,           // polls a flag nobody sets
};

constexpr int kThreads = 256;

// y[i] = x[255 - i] within each block of 256, and *sum += all x; n is a multiple of 256.
// `scratch` is a word that only the bugs touch.
void run(Bug bug, const float* x, float* y, float* sum, const float* scratch, int n, cudaStream_t stream);

}  // namespace faults
