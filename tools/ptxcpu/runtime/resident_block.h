// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// One resident block: its memory, its threads, and the loop that runs them.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "checks.h"
#include "counters.h"
#include "launch.h"
#include "thread.h"

namespace ptxcpu {

enum class BlockStatus : uint8_t { kFinished, kStalled, kFailed };

// 0 .. n-1 in the order the options ask for.
std::vector<uint32_t> execution_order(uint32_t n, uint64_t salt);

class ResidentBlock {
 public:
  ResidentBlock(Launch* launch, const LaunchShape& shape, uint8_t* params, uint64_t* unit_counts,
                SiteTotals* totals);
  ~ResidentBlock();
  ResidentBlock(const ResidentBlock&) = delete;
  ResidentBlock& operator=(const ResidentBlock&) = delete;

  // Makes the threads of the given block ready to start.
  void start(uint32_t linear_id);

  // Runs until the block ends, fails, or does nothing but poll memory.
  BlockStatus run();

  // A thread that could not go on, for reports.
  Thread* waiting_thread();

 private:
  struct FreeDeleter {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };

  void reset_warps();
  void reset_threads();
  bool run_round();
  void report_deadlock();

  Block block_{};
  std::unique_ptr<uint8_t, FreeDeleter> shared_;
  std::unique_ptr<SharedShadow> shadow_;
  std::vector<WarpCounters> counters_;
  std::vector<uint32_t> order_;
  uint64_t round_ = 0;
};

}  // namespace ptxcpu
