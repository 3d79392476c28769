// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Counters: instruction classes per launch, and the quality of every memory instruction's accesses.
//
// Lanes run one after another, so the accesses of a warp are put together again: the same
// instruction, and the same number of executions since the lanes last synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "thread.h"

namespace ptxcpu {

struct SiteTotals {
  uint64_t global_requests = 0, global_bytes = 0, sectors = 0, ideal_sectors = 0;
  uint64_t shared_requests = 0, shared_bytes = 0, wavefronts = 0, ideal_wavefronts = 0;
};

struct WarpAccess {
  uint64_t address[32];
  uint32_t lanes = 0;
  uint32_t bytes = 0;
};

// Accesses of one instruction that wait for the remaining lanes. `first` numbers the front one.
struct AccessQueue {
  std::vector<WarpAccess> waiting;
  uint32_t first = 0;
  uint32_t next[32] = {};  // per lane: the number of its next access
};

struct WarpCounters {
  std::vector<AccessQueue> queues;  // two per site: global, shared
  std::vector<uint32_t> touched;
  SiteTotals* totals = nullptr;  // of the launch, per site
};

// Accounts what the warp has collected; called where all its live lanes have met.
void flush_warp_counters(Warp* warp);

// Adds one warp-wide access to the totals.
void account_global(const WarpAccess& access, SiteTotals* totals);
void account_shared(const WarpAccess& access, SiteTotals* totals);

struct CountedGrid {
  uint32_t blocks, executed, threads,
      shared_bytes;  // of a block: threads and shared memory, static and dynamic
};

// Adds a finished launch to the accumulated counters of its kernel.
void add_launch_counters(const Launch& launch, const CountedGrid& grid, const std::vector<uint64_t>& units,
                         const std::vector<SiteTotals>& sites);

}  // namespace ptxcpu
