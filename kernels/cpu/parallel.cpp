// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "parallel.h"

#include <exception>
#include <utility>

#include "../error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pwdice::cpu {
namespace {

// About 20 microseconds: longer than the gap between two ops of a step, shorter than a scheduler tick.
constexpr int kSpins = 2000;

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns a value whose bits of `mask` differ from those of `old`.
uint32_t wait_for_change(const std::atomic<uint32_t>& value, uint32_t old, uint32_t mask) {
  uint32_t now = value.load(std::memory_order_acquire);
  for (int spin = 0; spin < kSpins && ((now ^ old) & mask) == 0; ++spin) {
    relax();
    now = value.load(std::memory_order_acquire);
  }
  while (((now ^ old) & mask) == 0) {
    value.wait(now, std::memory_order_acquire);
    now = value.load(std::memory_order_acquire);
  }
  return now;
}

}  // namespace

ThreadPool::ThreadPool(int threads) : stretches_(static_cast<size_t>(threads > 1 ? threads : 1)) {
  workers_.reserve(threads > 1 ? threads - 1 : 0);
  try {
    for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
  } catch (const std::exception& error) {  // a limit on processes or memory
    end_workers();  // a running std::thread that is destroyed would end the process
    fail(ErrorCode::OutOfMemory, "context: thread {} of {} could not be started: {}", this->threads() + 1, threads,
         error.what());
  }
}

ThreadPool::~ThreadPool() { end_workers(); }

void ThreadPool::end_workers() noexcept {
  stop_.store(true, std::memory_order_relaxed);
  state_.fetch_add(kNextLoop, std::memory_order_release);
  state_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t chunks, Call call, void* body) {
  if (chunks <= 0) return;
  if (workers_.empty() || chunks == 1) {
    for (int64_t c = 0; c < chunks; ++c) call(body, c, 0);
    return;
  }
  loop_ = {call, body, chunks};
  const int64_t threads = this->threads();
  for (int64_t t = 0; t < threads; ++t) {
    Stretch& stretch = stretches_[static_cast<size_t>(t)];
    const Range own = even_range(chunks, threads, t);
    stretch.next.store(own.begin, std::memory_order_relaxed);
    stretch.end = own.end;
  }
  const uint32_t before = state_.load(std::memory_order_relaxed);            // closed, nobody inside
  state_.store((before + kNextLoop) & ~kClosed, std::memory_order_release);  // publishes the loop
  state_.notify_all();
  take_chunks(0);
  uint32_t state = state_.fetch_or(kClosed, std::memory_order_acq_rel);
  while ((state & kJoined) != 0) state = wait_for_change(state_, state, kJoined);
  if (failed_.load(std::memory_order_relaxed)) {
    failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void ThreadPool::work(int thread) {
  constexpr uint32_t kLoop = ~(kJoined | kClosed);
  for (uint32_t seen = 0;;) {
    seen = wait_for_change(state_, seen, kLoop) & kLoop;
    if (stop_.load(std::memory_order_relaxed)) return;
    if (!join(seen)) continue;
    take_chunks(thread);
    const uint32_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & (kClosed | kJoined)) == (kClosed | 1)) state_.notify_all();
  }
}

// False when the loop has been closed or is over.
bool ThreadPool::join(uint32_t loop) {
  uint32_t state = state_.load(std::memory_order_relaxed);
  while ((state & ~kJoined) == loop) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  }
  return false;
}

void ThreadPool::take_chunks(int thread) {
  const size_t count = stretches_.size();
  try {
    for (size_t i = 0; i < count; ++i) {
      Stretch& stretch = stretches_[(static_cast<size_t>(thread) + i) % count];
      while (stretch.next.load(std::memory_order_relaxed) < stretch.end) {
        const int64_t chunk = stretch.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk < stretch.end) loop_.call(loop_.body, chunk, thread);
      }
    }
  } catch (...) {
    for (Stretch& stretch : stretches_) stretch.next.store(stretch.end, std::memory_order_relaxed);
    if (!failed_.exchange(true, std::memory_order_acq_rel)) error_ = std::current_exception();
  }
}

}  // namespace pwdice::cpu
