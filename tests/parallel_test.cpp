// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/cpu/parallel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#endif

#include "../kernels/error.h"
#include "sanitized.h"

namespace pwdice::cpu {
namespace {

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t chunks : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(chunks));
      pool.parallel_for(chunks, [&](int64_t c, int thread) {
        EXPECT_TRUE(thread >= 0 && thread < threads);
        ++runs[static_cast<size_t>(c)];
      });
      for (auto& r : runs) EXPECT_EQ(r, 1);
    }
  }
}

// The state a chunk writes is visible to the caller without further synchronisation, thousands of times in a
// row: the case ThreadSanitizer should look at.
TEST(ThreadPool, HandsResultsBackLoopAfterLoop) {
  ThreadPool pool(3);
  std::vector<int64_t> values(64);
  for (int64_t round = 1; round <= 3000; ++round) {
    pool.parallel_for(64, [&](int64_t c, int) { values[static_cast<size_t>(c)] += c; });
    ASSERT_EQ(values[63], 63 * round);
    ASSERT_EQ(values[1], round);
  }
}

TEST(ThreadPool, WorkersWakeAfterSleeping) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // well past the spinning phase
    std::atomic<int> sum{0};
    pool.parallel_for(10, [&](int64_t c, int) { sum += static_cast<int>(c); });
    EXPECT_EQ(sum, 45);
  }
}

TEST(ThreadPool, OneChunkStaysOnTheCallingThread) {
  ThreadPool pool(4);
  std::thread::id ran_on;
  pool.parallel_for(1, [&](int64_t, int) { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(ThreadPool, RethrowsAndSurvives) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 20; ++round) {
      try {
        pool.parallel_for(50, [&](int64_t c, int) {
          if (c % 7 == 3) throw std::runtime_error("chunk " + std::to_string(c));
        });
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(std::string(error.what()).substr(0, 6), "chunk ");
      }
      std::atomic<int> runs{0};
      pool.parallel_for(50, [&](int64_t, int) { ++runs; });
      EXPECT_EQ(runs, 50);
    }
  }
}

TEST(ThreadPool, TwoPoolsDoNotDisturbEachOther) {
  ThreadPool a(2), b(2);
  std::atomic<int> runs{0};
  std::thread other([&] {
    for (int i = 0; i < 500; ++i) b.parallel_for(8, [&](int64_t, int) { ++runs; });
  });
  for (int i = 0; i < 500; ++i) a.parallel_for(8, [&](int64_t, int) { ++runs; });
  other.join();
  EXPECT_EQ(runs, 8000);
}

// A limit on address space stops the root user too, unlike one on processes.
#if defined(__linux__) && !defined(PWDICE_SANITIZED)
[[noreturn]] void start_more_threads_than_fit() {
  long pages = 0;
  std::FILE* statm = std::fopen("/proc/self/statm", "r");
  if (statm == nullptr || std::fscanf(statm, "%ld", &pages) != 1) _exit(2);
  std::fclose(statm);
  rlimit before, limit;
  getrlimit(RLIMIT_AS, &before);
  limit = before;
  limit.rlim_cur = static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{44} << 20);
  setrlimit(RLIMIT_AS, &limit);  // a few stacks
  try {
    ThreadPool pool(1024);
  } catch (const Error& error) {
    setrlimit(RLIMIT_AS, &before);
    std::fprintf(stderr, "%s: %s\n", name(error.code()), error.what());
    std::atomic<int> sum{0};
    ThreadPool(3).parallel_for(10, [&](int64_t c, int) { sum += static_cast<int>(c); });
    _exit(sum == 45 ? 0 : 3);
  }
  _exit(4);
}

TEST(ThreadPool, AThreadThatCannotStartIsAnError) {
  EXPECT_EXIT(start_more_threads_than_fit(), testing::ExitedWithCode(0),
              "OutOfMemory: context: thread [0-9]+ of 1024 could not be started: .");
}
#endif

TEST(Chunks, CoverTheRangeWithoutOverlap) {
  for (int64_t n : {0, 1, 7, 8, 9, 64}) {
    int64_t at = 0;
    for (int64_t c = 0; c < chunk_count(n, 8); ++c) {
      const Range r = chunk_range(n, 8, c);
      EXPECT_EQ(r.begin, at);
      EXPECT_GT(r.end, r.begin);
      at = r.end;
    }
    EXPECT_EQ(at, n);
  }
}

}  // namespace
}  // namespace pwdice::cpu
