// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "barrier.h"

#include "checks.h"
#include "counters.h"
#include "fault.h"
#include "fiber.h"
#include "options.h"

namespace ptxcpu {
namespace {

constexpr uint32_t kNoBarrier = ~0u;
constexpr Barrier kFreshBarrier{0, 0, 0, 1, 0};

bool waits_at(const Thread& thread, uint32_t id) {
  return thread.state == State::kWaitsAtBarrier && thread.barrier_id == id;
}

bool is_checked(const Block* block) { return block->launch->module->flags & kModuleChecked; }

// __syncthreads() must be reached by all threads at one place, with none of them gone.
// Named barriers with a count are how warps with different roles meet: anything goes there.
bool is_misused(Block* block, uint32_t id) {
  if (!is_checked(block) || id != 0 || block->barriers[id].expected != 0) return false;
  Thread* first = nullptr;
  for (Thread& thread : block->threads) {
    if (!waits_at(thread, id)) continue;
    if (!first) first = &thread;
    if (thread.site != first->site) {
      report_fault(&thread, thread.site, Fault::kBarrier,
                   "divergent barrier: thread %u waits at another __syncthreads() than this thread",
                   first->index);
      return true;
    }
  }
  const uint32_t gone = block->thread_count - block->alive;
  if (first && gone && options().check_exited_lanes) {
    report_fault(first, first->site, Fault::kBarrier,
                 "barrier after exit: __syncthreads() completes after %u threads of the block have returned",
                 gone);
    return true;
  }
  return false;
}

void release(Block* block, uint32_t id) {
  const Barrier& barrier = block->barriers[id];
  const uint32_t result = (barrier.count << 2) | (barrier.all << 1) | barrier.any;
  for (Thread& thread : block->threads) {
    if (!waits_at(thread, id)) continue;
    thread.state = State::kReady;
    thread.barrier_result = result;
    thread.barrier_id = kNoBarrier;
  }
  for (Warp& warp : block->warps) {
    ++warp.epoch;
    flush_warp_counters(&warp);
  }
  advance_shared_epoch(block);
  ++block->progress;
  block->barriers[id] = kFreshBarrier;
}

void release_if_complete(Block* block, uint32_t id) {
  const Barrier& barrier = block->barriers[id];
  const uint32_t needed = barrier.expected ? barrier.expected : block->alive;
  if (barrier.arrived == 0 || barrier.arrived < needed) return;
  if (!is_misused(block, id)) release(block, id);
}

void arrive(Thread* thread, int site, uint32_t id, uint32_t expected, bool value) {
  if (id >= Block::kBarriers) fault(thread, site, Fault::kBarrier, "barrier %u does not exist", id);
  Barrier& barrier = thread->block->barriers[id];
  if (barrier.arrived == 0) barrier = {0, expected, 0, 1, 0};
  ++barrier.arrived;
  barrier.count += value;
  barrier.all &= uint32_t(value);
  barrier.any |= uint32_t(value);
}

uint32_t wait(Thread* thread, int site, uint32_t id, uint32_t expected, bool value) {
  arrive(thread, site, id, expected, value);
  thread->barrier_id = id;
  thread->site = site;
  thread->state = State::kWaitsAtBarrier;
  release_if_complete(thread->block, id);
  if (thread->state == State::kWaitsAtBarrier) yield_to_scheduler(thread);
  return thread->barrier_result;
}

}  // namespace

void barrier_sync(Thread* thread, int site, uint32_t id, uint32_t expected) {
  wait(thread, site, id, expected, false);
}

void barrier_arrive(Thread* thread, int site, uint32_t id, uint32_t expected) {
  arrive(thread, site, id, expected, false);
  release_if_complete(thread->block, id);
  if (thread->block->launch->failed) yield_to_scheduler(thread);
}

uint32_t barrier_reduce(Thread* thread, int site, uint32_t id, uint32_t expected, bool value, Reduce mode) {
  const uint32_t result = wait(thread, site, id, expected, value);
  switch (mode) {
    case Reduce::k_popc:
      return result >> 2;
    case Reduce::k_and:
      return (result >> 1) & 1;
    case Reduce::k_or:
      return result & 1;
  }
  return 0;
}

void reset_barriers(Block* block) {
  for (Barrier& barrier : block->barriers) barrier = kFreshBarrier;
}

void release_barriers_after_exit(Block* block) {
  for (uint32_t id = 0; id < Block::kBarriers; ++id) {
    if (block->barriers[id].arrived && !block->barriers[id].expected) release_if_complete(block, id);
  }
}

}  // namespace ptxcpu
