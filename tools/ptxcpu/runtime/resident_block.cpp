// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "resident_block.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>

#include "async_copy.h"
#include "barrier.h"
#include "fault.h"
#include "fiber.h"
#include "options.h"
#include "warp.h"

namespace ptxcpu {
namespace {

constexpr uint32_t kSharedAlignment = 1024;
// So many rounds and polls without progress, and another block gets its turn.
constexpr uint64_t kPatience = 64;

void retire(Thread* thread) {
  Block* block = thread->block;
  thread->state = State::kDone;
  perform_copies(thread, thread->async_copies.size());
  thread->async_groups.clear();
  --block->alive;
  ++block->progress;
  thread->warp->exited |= 1u << thread->lane;
  if (thread->warp->waiting) release_after_exit(thread->warp);
  release_barriers_after_exit(block);
}

void fiber_entry() {
  Thread* thread = starting_thread();
  thread->block->launch->kernel->function(thread);
  exit_thread(thread);
}

}  // namespace

void exit_thread(Thread* thread) {
  retire(thread);
  for (;;) yield_to_scheduler(thread);
}

void yield_spinning(Thread* thread, int site) {
  thread->site = site;
  thread->state = State::kSpinning;
  ++thread->block->polls;
  yield_to_scheduler(thread);
}

uint64_t clock_ticks() { return uint64_t(std::chrono::steady_clock::now().time_since_epoch().count()); }

std::vector<uint32_t> execution_order(uint32_t n, uint64_t salt) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  if (options().order == Order::kReversed) std::reverse(order.begin(), order.end());
  if (options().order == Order::kShuffled) {
    std::mt19937_64 generator(options().seed * 1000003 + salt);
    std::shuffle(order.begin(), order.end(), generator);
  }
  return order;
}

ResidentBlock::ResidentBlock(Launch* launch, const LaunchShape& shape, uint8_t* params, uint64_t* unit_counts,
                             SiteTotals* totals) {
  block_.launch = launch;
  std::copy(shape.grid, shape.grid + 3, block_.grid_dim);
  std::copy(shape.block, shape.block + 3, block_.block_dim);
  block_.thread_count = shape.block[0] * shape.block[1] * shape.block[2];
  block_.params = params;
  block_.unit_counts = unit_counts;
  block_.static_shared_bytes = (launch->kernel->shared_bytes + 15) & ~15u;
  block_.dynamic_shared_bytes = shape.dynamic_shared_bytes;
  block_.shared_bytes = block_.static_shared_bytes + block_.dynamic_shared_bytes;
  const size_t padded = (block_.shared_bytes / kSharedAlignment + 1) * kSharedAlignment;
  shared_.reset(static_cast<uint8_t*>(std::aligned_alloc(kSharedAlignment, padded)));
  if (!shared_) throw std::bad_alloc();
  block_.shared = shared_.get();
  if (launch->module->flags & kModuleChecked) shadow_ = std::make_unique<SharedShadow>();
  block_.shadow = shadow_.get();
  block_.threads.resize(block_.thread_count);
  block_.warps.resize((block_.thread_count + 31) / 32);
  for (Thread& thread : block_.threads) thread.stack = acquire_stack();
  if (totals != nullptr) {
    counters_.resize(block_.warps.size());
    for (WarpCounters& counters : counters_) {
      counters.queues.resize(size_t(launch->module->site_count) * 2);
      counters.totals = totals;
    }
  }
}

ResidentBlock::~ResidentBlock() {
  for (Thread& thread : block_.threads) release_stack(thread.stack);
}

void ResidentBlock::reset_warps() {
  for (size_t i = 0; i < block_.warps.size(); ++i) {
    Warp& warp = block_.warps[i];
    warp.size = std::min(32u, block_.thread_count - uint32_t(i) * 32);
    warp.exited = warp.waiting = 0;
    warp.epoch = 1;
    warp.counters = counters_.empty() ? nullptr : &counters_[i];
  }
}

void ResidentBlock::reset_threads() {
  const uint32_t* dim = block_.block_dim;
  for (uint32_t i = 0; i < block_.thread_count; ++i) {
    Thread& thread = block_.threads[i];
    thread.block = &block_;
    thread.warp = &block_.warps[i / 32];
    thread.warp->threads[i % 32] = &thread;
    thread.index = i;
    thread.lane = i % 32;
    thread.tid[0] = i % dim[0];
    thread.tid[1] = i / dim[0] % dim[1];
    thread.tid[2] = i / (dim[0] * dim[1]);
    thread.state = State::kReady;
    thread.site = -1;
    thread.async_copies.clear();
    thread.async_groups.clear();
    prepare_fiber(&thread, fiber_entry);
  }
}

void ResidentBlock::start(uint32_t linear_id) {
  const uint32_t* grid = block_.grid_dim;
  block_.linear_id = linear_id;
  block_.block_id[0] = linear_id % grid[0];
  block_.block_id[1] = linear_id / grid[0] % grid[1];
  block_.block_id[2] = linear_id / (grid[0] * grid[1]);
  block_.alive = block_.thread_count;
  std::memset(block_.shared, 0xff, block_.shared_bytes);  // NaN, in builds without checks as well
  std::memset(block_.ranges, 0, sizeof block_.ranges);
  reset_shadow(&block_);
  reset_barriers(&block_);
  reset_warps();
  reset_threads();
  order_ = execution_order(block_.thread_count, linear_id);
}

// Gives every runnable thread one turn; false if there was none.
bool ResidentBlock::run_round() {
  bool ran = false;
  if (options().order == Order::kShuffled)
    order_ = execution_order(block_.thread_count, block_.linear_id * uint64_t(7919) + ++round_);
  for (const uint32_t index : order_) {
    Thread& thread = block_.threads[index];
    if (thread.state != State::kReady && thread.state != State::kSpinning) continue;
    thread.state = State::kReady;
    ran = true;
    resume(&thread);
    if (block_.launch->failed) return true;
  }
  return ran;
}

BlockStatus ResidentBlock::run() {
  uint64_t rounds = 0, progress = block_.progress, polls = block_.polls;
  while (block_.alive) {
    const bool ran = run_round();
    if (block_.launch->failed) return BlockStatus::kFailed;
    if (!ran) {
      report_deadlock();
      return BlockStatus::kFailed;
    }
    if (block_.progress != progress) {
      rounds = 0;
      progress = block_.progress;
      polls = block_.polls;
    } else if (++rounds >= kPatience && block_.polls - polls >= kPatience) {
      return BlockStatus::kStalled;
    }
  }
  for (Warp& warp : block_.warps) flush_warp_counters(&warp);
  return BlockStatus::kFinished;
}

Thread* ResidentBlock::waiting_thread() {
  for (Thread& thread : block_.threads)
    if (thread.state != State::kDone) return &thread;
  return &block_.threads.front();
}

void ResidentBlock::report_deadlock() {
  uint32_t at_barrier = 0, in_warp = 0;
  Thread* barrier_thread = nullptr;
  Thread* warp_thread = nullptr;
  for (Thread& thread : block_.threads) {
    if (thread.state == State::kWaitsAtBarrier && !at_barrier++) barrier_thread = &thread;
    if (thread.state == State::kWaitsForWarp && !in_warp++) warp_thread = &thread;
  }
  Thread* shown = warp_thread ? warp_thread : barrier_thread;
  if (!shown) shown = waiting_thread();
  const uint32_t mask = warp_thread ? warp_thread->warp->mask[warp_thread->lane] : 0;
  report_fault(shown, shown->site, Fault::kDeadlock,
               "deadlock: %u threads wait at a barrier, %u in a warp operation (mask %08x), %u have returned",
               at_barrier, in_warp, mask, block_.thread_count - block_.alive);
}

}  // namespace ptxcpu
