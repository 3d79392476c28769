// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/cpu/slice_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

namespace pwdice::cpu {
namespace {

constexpr int64_t kBlocks[] = {5, 1, 7, 2};
constexpr int64_t kSlices = 4, kSpares = 3;

SliceQueue make_queue() {
  return {kSlices, kSpares, [](int64_t slice) { return kBlocks[slice]; }};
}

// Sums of very different size, so that every order of adding them has bits of its own.
float value(int64_t slice, int64_t block) {
  return std::ldexp(1.f + static_cast<float>(block) / 7.f, static_cast<int>((5 * slice + 11 * block) % 23));
}

// The total as an op makes it, and how many blocks were computed by helpers. A block takes `pause` of its slice.
struct Summed {
  float total = 0;
  int helped = 0;
};
Summed sum(ThreadPool& pool, std::chrono::microseconds (*pause)(int64_t slice)) {
  SliceQueue queue = make_queue();
  std::vector<float> place_sums(kSlices + kSpares, -1.f);
  std::vector<std::atomic<int>> runs(kSlices * 8);
  std::atomic<int> helped{0};
  queue.run(pool, [&](int64_t slice, int64_t block, int64_t place, int thread) {
    EXPECT_TRUE(thread >= 0 && thread < pool.threads());
    ++runs[static_cast<size_t>(slice * 8 + block)];
    std::this_thread::sleep_for(pause(slice));
    float& at = place_sums[static_cast<size_t>(place)];
    at = place < kSlices && block > 0 ? at + value(slice, block) : value(slice, block);
    if (place >= kSlices) ++helped;
  });
  for (int64_t s = 0; s < kSlices; ++s) {
    for (int64_t b = 0; b < 8; ++b) EXPECT_EQ(runs[static_cast<size_t>(s * 8 + b)], b < kBlocks[s] ? 1 : 0);
  }
  queue.for_each_helped([&](int64_t slice, int64_t place) {
    place_sums[static_cast<size_t>(slice)] += place_sums[static_cast<size_t>(place)];
  });
  Summed result{place_sums[0], helped};
  for (size_t s = 1; s < kSlices; ++s) result.total += place_sums[s];
  return result;
}

TEST(SliceQueue, OneThreadTakesEverythingInOrder) {
  ThreadPool pool(1);
  float want = 0;
  for (int64_t s = 0; s < kSlices; ++s) {
    float of_slice = value(s, 0);
    for (int64_t b = 1; b < kBlocks[s]; ++b) of_slice += value(s, b);
    want = s == 0 ? of_slice : want + of_slice;
  }
  const Summed got = sum(pool, [](int64_t) { return std::chrono::microseconds(0); });
  EXPECT_EQ(got.total, want);
  EXPECT_EQ(got.helped, 0);
}

TEST(SliceQueue, HelpersAreSeenInTheTimeAlone) {
  ThreadPool one(1);
  const float want = sum(one, [](int64_t) { return std::chrono::microseconds(0); }).total;
  for (int threads : {2, 3, 7}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      ASSERT_EQ(sum(pool, [](int64_t) { return std::chrono::microseconds(0); }).total, want);
    }
    const Summed slow =
        sum(pool, [](int64_t slice) { return std::chrono::microseconds(slice == 2 ? 3000 : 10); });
    EXPECT_EQ(slow.total, want) << threads << " threads";
    EXPECT_GT(slow.helped, 0) << threads << " threads";
    EXPECT_LE(slow.helped, kSpares);
  }
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
