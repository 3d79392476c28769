// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// The state of a running launch: blocks, warps and threads, one fiber per thread.
#pragma once

#include <cstdint>
#include <vector>

#include "module.h"

namespace ptxcpu {

struct Warp;
struct Block;
struct Launch;
struct SharedShadow;
struct WarpCounters;

enum class State : uint8_t { kReady, kSpinning, kWaitsForWarp, kWaitsAtBarrier, kDone };

struct AsyncCopy {
  uint8_t* target;
  const uint8_t* source;
  uint32_t bytes, zeros;
  int site;
};

struct Thread {
  void* stack_pointer;
  uint8_t* stack;
  Block* block;
  Warp* warp;
  uint32_t tid[3];
  uint32_t lane, index;
  State state;
  int site;  // where it waits
  uint32_t barrier_id, barrier_result;
  std::vector<AsyncCopy> async_copies;
  std::vector<uint32_t> async_groups;  // number of copies when each group was committed
};

using Collective = void (*)(Warp*, uint32_t lanes);

struct Warp {
  Thread* threads[32];
  uint32_t size;
  uint32_t exited, waiting;  // lane masks
  uint32_t epoch;            // advances when the lanes synchronise
  uint32_t mask[32];
  int site[32];
  void* slot[32];
  Collective collective[32];
  bool same_site[32];  // the collective requires all lanes at one instruction
  WarpCounters* counters;
};

struct Barrier {
  uint32_t arrived, expected;  // expected 0: all threads that have not exited
  uint32_t count, all, any;    // of the predicates given
};

// The last allocation an instruction touched: most never touch another.
struct CachedRange {
  uint64_t base, size;
};

struct Block {
  static constexpr uint32_t kBarriers = 16;
  static constexpr uint32_t kRangeCache = 64;

  Launch* launch;
  uint32_t block_id[3], grid_dim[3], block_dim[3];
  uint32_t linear_id;
  uint32_t thread_count, alive;
  uint8_t* shared;
  uint32_t static_shared_bytes, dynamic_shared_bytes, shared_bytes;
  uint8_t* params;
  uint64_t* unit_counts;
  SharedShadow* shadow;
  uint64_t progress;  // stores, barriers and exits: what a thread waiting for another block lacks
  uint64_t polls;     // reads such as waiting loops make
  void* scheduler_stack_pointer;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier barriers[kBarriers];
  CachedRange ranges[kRangeCache];
};

struct Launch {
  const ModuleInfo* module;
  const KernelInfo* kernel;
  bool failed;
  int error;  // cudaError_t of the fault
};

inline uint32_t live_lanes(const Warp* warp) {
  const uint32_t present = warp->size < 32 ? (1u << warp->size) - 1 : 0xffffffffu;
  return present & ~warp->exited;
}

}  // namespace ptxcpu
