// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "parallel.h"

#include <utility>

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

template <class T>
void wait_while(std::atomic<T>& value, T old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  workers_.reserve(threads > 1 ? threads - 1 : 0);
  for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t chunks, Call call, void* body) {
  if (chunks <= 0) return;
  if (workers_.empty() || chunks == 1) {
    for (int64_t c = 0; c < chunks; ++c) call(body, c, 0);
    return;
  }
  loop_ = {call, body, chunks};
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);  // publishes loop_, next_ and busy_
  generation_.notify_all();
  take_chunks(0);
  for (int left = busy_.load(std::memory_order_acquire); left != 0; left = busy_.load(std::memory_order_acquire)) {
    wait_while(busy_, left);
  }
  if (failed_.load(std::memory_order_relaxed)) {
    failed_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void ThreadPool::work(int thread) {
  for (uint32_t seen = 0;;) {
    wait_while(generation_, seen);
    ++seen;
    if (stop_) return;
    take_chunks(thread);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

void ThreadPool::take_chunks(int thread) {
  try {
    for (int64_t c = next_.fetch_add(1, std::memory_order_relaxed); c < loop_.chunks;
         c = next_.fetch_add(1, std::memory_order_relaxed)) {
      loop_.call(loop_.body, c, thread);
    }
  } catch (...) {
    next_.store(loop_.chunks, std::memory_order_relaxed);
    if (!failed_.exchange(true, std::memory_order_acq_rel)) error_ = std::current_exception();
  }
}

}  // namespace pwdice::cpu
