// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "../error.h"
#include "parallel.h"

namespace pwdice::cpu {

// Sums over rows, dealt out to threads. The rows are cut into slices, and a slice into blocks that are added up in
// order: one thread takes a slice from the front, block after block into the slice's own sums. A thread that finds no
// more slices helps: it takes the last block of the slice that has most of them left, into a spare place, from where it
// is added afterwards. A block computes its sums and then adds them once, so it makes no difference to the bits where
// they were kept: who was faster does not show in the result.
//
// Without helpers, a core that something else slows down to 80 % makes the others wait for an eighth of the time when
// there are four slices for two threads.
class SliceQueue {
 public:
  static constexpr int64_t kMaxSlices = 8, kMaxSpares = 8;

  // blocks(slice) is the number of its blocks, at least one.
  template <class Blocks>
  SliceQueue(int64_t slices, int64_t spares, const Blocks& blocks) : slices_(slices), spares_(spares) {
    PWDICE_CHECK(slices <= kMaxSlices && spares <= kMaxSpares, "slices: {} with {} spare ones are too many",
                 slices, spares);
    for (int64_t s = 0; s < slices; ++s) {
      queue_[s].left = std::bit_cast<uint64_t>(Left{0, static_cast<int32_t>(blocks(s))});
    }
  }

  // body(slice, block, place, thread) for every block. Places are the slices' own, then the spare ones; there is nothing
  // to add to in a spare one, or when the block is the first.
  template <class Body>
  void run(ThreadPool& pool, const Body& body) {
    pool.parallel_for(pool.threads(), [&](int64_t worker, int thread) {
      const int64_t first = even_range(slices_, pool.threads(), worker).begin;
      for (int64_t i = 0; i < slices_; ++i) {
        const int64_t slice = (first + i) % slices_;
        if (queue_[slice].owned.exchange(true, std::memory_order_relaxed)) continue;
        for (int64_t block; (block = take(slice, Side::Front)) >= 0;) body(slice, block, slice, thread);
      }
      help(body, thread);
    });
    list_helped();
  }

  // After run(): f(slice, place) for each spare place with sums of a slice, in the order of the blocks. To be added to
  // the slice's own before the slices are added up.
  template <class F>
  void for_each_helped(const F& f) const {
    for (int64_t i = 0; i < helped_count_; ++i) f(helped_[i].slice, helped_[i].place);
  }

 private:
  enum class Side { Front, Back };
  struct Left {  // blocks that nobody has taken
    int32_t begin, end;
  };
  struct alignas(64) Queue {
    std::atomic<uint64_t> left{0};  // a Left: as a struct it is not lock-free for clang
    std::atomic<bool> owned{false};
  };
  struct Taken {
    int64_t slice = -1, block = -1;
  };
  struct Helped {
    int64_t slice, place;
  };

  Left left_of(int64_t slice) const {
    return std::bit_cast<Left>(queue_[slice].left.load(std::memory_order_relaxed));
  }

  // The number of a block, or -1. The first block of a slice is its owner's: the slice's own sums have a value then.
  int64_t take(int64_t slice, Side side) {
    std::atomic<uint64_t>& left = queue_[slice].left;
    for (uint64_t bits = left.load(std::memory_order_relaxed);;) {
      const Left now = std::bit_cast<Left>(bits);
      if (now.begin >= now.end || (side == Side::Back && now.end == 1)) return -1;
      const Left then = side == Side::Front ? Left{now.begin + 1, now.end} : Left{now.begin, now.end - 1};
      if (left.compare_exchange_weak(bits, std::bit_cast<uint64_t>(then), std::memory_order_relaxed)) {
        return side == Side::Front ? now.begin : then.end;
      }
    }
  }

  template <class Body>
  void help(const Body& body, int thread) {
    int64_t spare = -1;
    for (int64_t slice; (slice = longest()) >= 0;) {
      if (spare < 0) spare = used_.fetch_add(1, std::memory_order_relaxed);
      if (spare >= spares_) return;
      const int64_t block = take(slice, Side::Back);
      if (block < 0) continue;
      body(slice, block, slices_ + spare, thread);
      taken_[spare] = {slice, block};
      spare = -1;
    }
  }

  // The slice with most blocks left to help with, or -1.
  int64_t longest() const {
    int64_t best = -1;
    int32_t most = 0;
    for (int64_t s = 0; s < slices_; ++s) {
      const Left left = left_of(s);
      const int32_t blocks = left.end - (left.begin > 0 ? left.begin : 1);
      if (blocks > most) best = s, most = blocks;
    }
    return best;
  }

  void list_helped() {
    for (int64_t slice = 0; slice < slices_; ++slice) {
      int64_t block = left_of(slice).end;
      for (int64_t spare; (spare = find(slice, block)) >= 0; ++block) {
        helped_[helped_count_++] = {slice, slices_ + spare};
      }
    }
  }
  int64_t find(int64_t slice, int64_t block) const {
    for (int64_t i = 0; i < spares_; ++i) {
      if (taken_[i].slice == slice && taken_[i].block == block) return i;
    }
    return -1;
  }

  int64_t slices_, spares_;
  Queue queue_[kMaxSlices];
  Taken taken_[kMaxSpares];
  std::atomic<int64_t> used_{0};
  Helped helped_[kMaxSpares];
  int64_t helped_count_ = 0;
};

}  // namespace pwdice::cpu
