// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Checks of memory use: shared memory by a shadow of each word, global memory by its allocations.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "access.h"
#include "thread.h"

namespace ptxcpu {

// What is known of one 4-byte word of shared memory. Fields below `epoch` hold only while it
// equals the block's: a barrier makes everything before it visible and forgotten.
struct ShadowWord {
  uint8_t initialized = 0;  // bit per byte
  uint8_t pending = 0;      // bytes an asynchronous copy is about to write
  uint32_t epoch = 0;
  uint32_t reading_warps = 0;
  uint32_t writer_warp_epoch = 0, reader_warp_epoch = 0;
  uint16_t writer = 0, last_reader = 0;  // thread index + 1; 0 for none
  uint8_t written_bytes = 0, read_bytes = 0;
  bool strong_write = false;
};

struct SharedShadow {
  uint32_t epoch = 1;
  std::vector<ShadowWord> words;
};

void reset_shadow(Block* block);
void advance_shared_epoch(Block* block);

// cp.async: from its issue until it is waited for, nobody may touch the bytes.
void begin_async_write(Thread* thread, const AsyncCopy& copy);
void complete_async_write(Thread* thread, const AsyncCopy& copy);

// Forgets which block touched what; called before each launch.
void begin_global_checks();

}  // namespace ptxcpu
