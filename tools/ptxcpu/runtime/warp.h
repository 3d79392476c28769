// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Warp-wide operations: each lane leaves its operands in a slot; the last to arrive computes for all.
#pragma once

#include <cstdint>

#include "thread.h"

namespace ptxcpu {

enum class Shuffle : uint8_t { k_up, k_down, k_bfly, k_idx };
enum class Vote : uint8_t { k_all, k_any, k_uni, k_ballot };
enum class Redux : uint8_t {
  k_add,
  k_min_u32,
  k_max_u32,
  k_min_s32,
  k_max_s32,
  k_min_f32,
  k_max_f32,
  k_and,
  k_or,
  k_xor,
};

// Blocks until every live lane of `mask` has come to a collective with the same function and mask
// (and, if same_site, the same instruction), then runs it once.
void join_collective(Thread* thread, int site, uint32_t mask, void* slot, Collective collective,
                     bool same_site);

// An exited lane may have been the last one the others waited for.
void release_after_exit(Warp* warp);

void warp_sync(Thread* thread, int site, uint32_t mask);
uint32_t shuffle(Thread* thread, int site, Shuffle mode, uint32_t value, uint32_t lane, uint32_t clamp,
                 uint32_t mask, bool* in_range);
uint32_t vote(Thread* thread, int site, Vote mode, bool value, uint32_t mask);
uint32_t match(Thread* thread, int site, bool all, uint64_t value, uint32_t mask, bool* equal);
uint32_t reduce(Thread* thread, int site, Redux operation, uint32_t value, uint32_t mask);

// All lanes that have not exited: what a converged warp would see.
inline uint32_t active_mask(const Thread* thread) { return live_lanes(thread->warp); }

// Polling loops give way, so that the thread or block they wait for can run.
void yield_spinning(Thread* thread, int site);
inline void may_spin(Thread* thread, int site) {
  constexpr uint32_t kPollsPerTurn = 64;
  if (++thread->block->polls % kPollsPerTurn == 0) yield_spinning(thread, site);
}
inline void memory_fence(Thread*) {}

[[noreturn]] void exit_thread(Thread* thread);
uint64_t clock_ticks();
void device_printf(uint64_t format, uint64_t arguments);

}  // namespace ptxcpu
