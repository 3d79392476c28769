// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

namespace pwdice::cpu {

// Threads that run numbered chunks of one loop at a time. Which thread runs a chunk does not matter to what
// it computes: an op derives its chunks from the shape alone and merges partial results in chunk order, so
// its bits do not depend on the thread count.
//
// It matters to the caches, though. Each thread begins with its own stretch of the chunks and helps the
// others when that is done; ops number their chunks along the rows of the batch, so that one op after another
// finds a thread's rows where that thread left them. (Two cores that trade their rows at random make the ops
// which only pass over memory slower than one core alone.)
//
// Plain std::thread and atomics, so that ThreadSanitizer sees every hand-over. A loop takes no lock and
// allocates nothing: workers spin briefly for the next loop and then sleep on a futex (std::atomic::wait).
// The caller works too, and waits only for workers that have joined the loop: one that is still asleep, or
// whose core is busy with something else, is not missed when the chunks have run out.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // throws OutOfMemory when the system grants fewer
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // body(chunk, thread) for every chunk in [0, chunks), thread in [0, threads()). An exception thrown by a
  // chunk is rethrown here after the loop has ended.
  template <class Body>
  void parallel_for(int64_t chunks, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        chunks, [](void* b, int64_t chunk, int thread) { (*static_cast<Plain*>(b))(chunk, thread); },
        const_cast<std::remove_const_t<Plain>*>(&body));
  }

 private:
  using Call = void (*)(void* body, int64_t chunk, int thread);
  void run(int64_t chunks, Call call, void* body);
  void work(int thread);
  void take_chunks(int thread);
  bool join(uint32_t loop);
  void end_workers() noexcept;

  struct Loop {
    Call call = nullptr;
    void* body = nullptr;
    int64_t chunks = 0;
  };
  Loop loop_;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  // The number of the loop, whether it is closed to workers who have not joined, and how many have.
  static constexpr uint32_t kJoined = (1u << 11) - 1, kClosed = 1u << 11, kNextLoop = 1u << 12;
  struct alignas(64) Stretch {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  std::vector<Stretch> stretches_;  // one per thread
  alignas(64) std::atomic<uint32_t> state_{kClosed};
  std::atomic<bool> stop_{false};  // atomic: a worker may wake up for an old loop while the pool ends
  std::vector<std::thread> workers_;
};

// [begin, end) of chunk c when n items are cut into pieces of `size`.
struct Range {
  int64_t begin, end;
};
inline int64_t chunk_count(int64_t n, int64_t size) { return (n + size - 1) / size; }
inline Range chunk_range(int64_t n, int64_t size, int64_t c) {
  const int64_t begin = c * size;
  return {begin, begin + size < n ? begin + size : n};
}
// The same for a number of parts, as even as can be.
inline Range even_range(int64_t n, int64_t parts, int64_t part) {
  return {n * part / parts, n * (part + 1) / parts};
}

}  // namespace pwdice::cpu
