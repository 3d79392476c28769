// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/cpu/slice_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace pwdice::cpu {
namespace {

constexpr int64_t kBlocks[] = {5, 1, 7, 2, 3, 1, 4, 2};
constexpr int64_t kSlices = 8, kSpares = 3;

// Sums as they were made, "((0.0+0.1)+0.2)" for a slice of three blocks: two with the same text have the same bits.
std::string plus(const std::string& a, const std::string& b) { return "(" + a + "+" + b + ")"; }
std::string block_name(int64_t slice, int64_t block) {
  return std::to_string(slice) + "." + std::to_string(block);
}
std::string expected_total(int64_t slices) {
  std::string halves[2];
  for (int64_t s = 0; s < slices; ++s) {
    std::string sum = block_name(s, 0);
    for (int64_t b = 1; b < kBlocks[s]; ++b) sum = plus(sum, block_name(s, b));
    std::string& half = halves[s >= slices / 2];
    half = half.empty() ? sum : plus(half, sum);
  }
  return slices == 1 ? halves[1] : plus(halves[0], halves[1]);
}

using Microseconds = std::chrono::microseconds;
struct Used {
  int64_t helped = 0, folds = 0;
  std::set<int64_t> places;  // with sums at the end of the run
};

// Runs the queue, a block taking `pause` of its slice, and demands that the total was added up as always.
Used check_run(ThreadPool& pool, Microseconds (*pause)(int64_t slice), int64_t slices = kSlices) {
  SliceQueue queue(slices, kSpares, [](int64_t slice) { return kBlocks[slice]; });
  std::vector<std::string> sums(static_cast<size_t>(slices + kSpares));  // by place
  std::atomic<int64_t> folds{0}, helped{0};
  const auto add_block = [&](int64_t slice, int64_t block, int64_t place, bool add, int thread) {
    EXPECT_TRUE(thread >= 0 && thread < pool.threads());
    std::this_thread::sleep_for(pause(slice));
    std::string& sum = sums[static_cast<size_t>(place)];
    EXPECT_TRUE(add != sum.empty()) << "place " << place << " has " << sum;
    sum = add ? plus(sum, block_name(slice, block)) : block_name(slice, block);
    helped += place >= slices;
  };
  const auto fold = [&](int64_t to, int64_t from) {
    sums[static_cast<size_t>(to)] = plus(sums[static_cast<size_t>(to)], sums[static_cast<size_t>(from)]);
    sums[static_cast<size_t>(from)].clear();
    ++folds;
  };
  queue.run(pool, add_block, fold);
  Used used{helped, folds, {}};
  for (size_t place = 0; place < sums.size(); ++place) {
    if (!sums[place].empty()) used.places.insert(static_cast<int64_t>(place));
  }
  std::set<int64_t> added;
  queue.for_each_addition([&](int64_t to, int64_t from) {
    EXPECT_TRUE(added.insert(from).second && !added.contains(to));
    sums[static_cast<size_t>(to)] = plus(sums[static_cast<size_t>(to)], sums[static_cast<size_t>(from)]);
  });
  EXPECT_EQ(sums[0], expected_total(slices));
  return used;
}

TEST(SliceQueue, OneThreadFoldsEachHalfIntoTwoPlaces) {
  ThreadPool pool(1);
  const Used used = check_run(pool, [](int64_t) { return Microseconds(0); });
  EXPECT_EQ(used.helped, 0);
  EXPECT_EQ(used.folds, 4);
  EXPECT_EQ(used.places, (std::set<int64_t>{0, 1, 4, 5}));
}

TEST(SliceQueue, ManyThreadsAddUpInTheSameOrder) {
  for (int threads : {2, 3, 4, 7, 8, 11}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      check_run(
          pool, [](int64_t) { return Microseconds(0); }, 1 + round % kSlices);
    }
  }
}

TEST(SliceQueue, ASlowSliceIsHelpedWith) {
  for (int threads : {2, 3, 7}) {
    ThreadPool pool(threads);
    int64_t helped = 0;  // a thread may sleep through one run, but not through all
    for (int round = 0; round < 20 && helped == 0; ++round) {
      helped = check_run(pool, [](int64_t slice) { return Microseconds(slice == 2 ? 3000 : 10); }).helped;
    }
    EXPECT_GT(helped, 0) << threads << " threads";
  }
}

TEST(SliceQueue, RefusesOtherNumbersOfSlices) {
  const auto make = [](int64_t slices, int64_t spares) {
    SliceQueue(slices, spares, [](int64_t) { return 1; });
  };
  EXPECT_THROW(make(0, 0), Error);
  EXPECT_THROW(make(SliceQueue::kMaxSlices + 1, 0), Error);
  EXPECT_THROW(make(1, SliceQueue::kMaxSpares + 1), Error);
}

TEST(SliceQueue, ASliceOfOneBlockIsItsOwners) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    SliceQueue queue(1, kSpares, [](int64_t) { return 1; });
    std::atomic<int> runs{0};
    const auto once = [&](int64_t slice, int64_t block, int64_t place, bool add, int) {
      EXPECT_EQ(slice + block + place, 0);
      EXPECT_FALSE(add);
      ++runs;
    };
    queue.run(pool, once, [](int64_t, int64_t) { FAIL(); });
    ASSERT_EQ(runs, 1);
    queue.for_each_addition([](int64_t, int64_t) { FAIL(); });
  }
}

}  // namespace
}  // namespace pwdice::cpu
