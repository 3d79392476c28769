// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/cpu/slice_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace pwdice::cpu {
namespace {

constexpr int64_t kBlocks[] = {5, 1, 7, 2};
constexpr int64_t kSlices = 4, kSpares = 3;

SliceQueue make_queue() {
  return {kSlices, kSpares, [](int64_t slice) { return kBlocks[slice]; }};
}

// Runs the queue, a block taking `pause` of its slice, and demands that every block was run once: those of a slice's
// own place from the first on in order, the rest in spare places and listed in order. Returns how many were helped with.
using Microseconds = std::chrono::microseconds;
int64_t check_run(ThreadPool& pool, Microseconds (*pause)(int64_t slice)) {
  SliceQueue queue = make_queue();
  std::vector<std::vector<int64_t>> blocks(kSlices + kSpares);  // by place
  queue.run(pool, [&](int64_t slice, int64_t block, int64_t place, int thread) {
    EXPECT_TRUE(thread >= 0 && thread < pool.threads());
    EXPECT_TRUE(place >= kSlices || place == slice);
    std::this_thread::sleep_for(pause(slice));
    blocks[static_cast<size_t>(place)].push_back(block);
  });
  int64_t helped = 0;
  queue.for_each_helped([&](int64_t slice, int64_t place) {
    auto& own = blocks[static_cast<size_t>(slice)];
    const auto& spare = blocks[static_cast<size_t>(place)];
    EXPECT_GE(place, kSlices);
    EXPECT_EQ(spare.size(), 1u);
    own.insert(own.end(), spare.begin(), spare.end());
    ++helped;
  });
  for (int64_t s = 0; s < kSlices; ++s) {
    std::vector<int64_t> all(static_cast<size_t>(kBlocks[s]));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(blocks[static_cast<size_t>(s)], all) << "slice " << s;
  }
  return helped;
}

TEST(SliceQueue, OneThreadTakesEverythingInOrder) {
  ThreadPool pool(1);
  EXPECT_EQ(check_run(pool, [](int64_t) { return Microseconds(0); }), 0);
}

TEST(SliceQueue, ManyThreadsTakeEverythingInOrder) {
  for (int threads : {2, 3, 7}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 300; ++round) check_run(pool, [](int64_t) { return Microseconds(0); });
  }
}

TEST(SliceQueue, ASlowSliceIsHelpedWith) {
  for (int threads : {2, 3, 7}) {
    ThreadPool pool(threads);
    int64_t helped = 0;  // a thread may sleep through one run, but not through all
    for (int round = 0; round < 20 && helped == 0; ++round) {
      helped = check_run(pool, [](int64_t slice) { return Microseconds(slice == 2 ? 3000 : 10); });
    }
    EXPECT_GT(helped, 0) << threads << " threads";
  }
}

TEST(SliceQueue, TooManySlices) {
  const auto make = [](int64_t slices, int64_t spares) {
    SliceQueue(slices, spares, [](int64_t) { return 1; });
  };
  EXPECT_THROW(make(SliceQueue::kMaxSlices + 1, 0), Error);
  EXPECT_THROW(make(1, SliceQueue::kMaxSpares + 1), Error);
}

TEST(SliceQueue, ASliceOfOneBlockIsItsOwners) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    SliceQueue queue(1, kSpares, [](int64_t) { return 1; });
    std::atomic<int> runs{0};
    queue.run(pool, [&](int64_t slice, int64_t block, int64_t place, int) {
      EXPECT_EQ(slice + block + place, 0);
      ++runs;
    });
    ASSERT_EQ(runs, 1);
    queue.for_each_helped([](int64_t, int64_t) { FAIL(); });
  }
}

}  // namespace
}  // namespace pwdice::cpu
