// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Settings, read once from the environment and changeable through the C API.
#pragma once

#include <cstdint>
#include <string>

namespace ptxcpu {

enum class Order : uint8_t { kForward, kReversed, kShuffled };

struct Options {
  Order order = Order::kForward;  // PTXCPU_ORDER=forward|reversed|shuffled
  uint64_t seed = 1;              // PTXCPU_SEED
  double timeout_seconds = 60;    // PTXCPU_TIMEOUT: blocks that only poll for so long are stuck
  bool trace = false;             // PTXCPU_TRACE=1: one line per launch
  bool counting = true;           // PTXCPU_COUNT=0: COUNT builds do not count
  uint32_t block_limit = 0;       // blocks of a launch that are executed; 0: all
  std::string counters_path;      // PTXCPU_COUNTERS: JSON written at exit
  // PTXCPU_CHECKS="+name,-name,..." changes the defaults below.
  bool check_shared_races = true;  // shared_races: between warps
  bool check_warp_races = true;    // warp_races: between lanes of a warp without a warp sync
  bool check_shared_init = true;   // shared_init: reads of shared memory never written
  bool check_exited_lanes = true;  // exited: barriers and warp operations after an exit
  bool check_global_init = false;  // global_init: reads of device memory never written
  bool check_block_races = false;  // block_races: between blocks of a launch
};

Options& options();

// False if there is no check of that name.
bool set_check(const std::string& name, bool enabled);

}  // namespace ptxcpu
