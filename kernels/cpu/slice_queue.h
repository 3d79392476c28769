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
// order: one thread takes a slice from the front, block after block into the sums of one place. A thread that finds no
// more slices helps: it takes the last block of the slice that has most of them left, into a spare place, from where it
// is added afterwards. A block computes its sums and then adds them once, so it makes no difference to the bits where
// they were kept: who was faster does not show in the result.
//
// The slices of each half are added up in order, and then the halves. A thread that has taken a half from its first slice
// on folds the second into the first before it takes a third, to the place of the second, and so on: two threads keep two
// sums each in their caches, and not four of which three wait for the end.
//
// Without helpers, a core that something else slows down to 80 % makes the others wait for an eighth of the time when
// there are four slices for two threads.
class SliceQueue {
 public:
  static constexpr int64_t kMaxSlices = 8, kMaxSpares = 8;

  // blocks(slice) is the number of its blocks, at least one.
  template <class Blocks>
  SliceQueue(int64_t slices, int64_t spares, const Blocks& blocks) : slices_(slices), spares_(spares) {
    PWDICE_CHECK(slices >= 1 && slices <= kMaxSlices && spares <= kMaxSpares,
                 "slices: {} with {} spare ones, expected 1 to {} and at most {}", slices, spares, kMaxSlices,
                 kMaxSpares);
    for (int64_t s = 0; s < slices; ++s) {
      queue_[s].left = std::bit_cast<uint64_t>(Left{0, static_cast<int32_t>(blocks(s))});
    }
  }

  // Once. body(slice, block, place, add, thread) for every block; without `add` the place has nothing to add to. There is a
  // place for each slice, then the spare ones. fold(to, from) adds the sums of one place to those of another; then nothing
  // is needed of the first any more, and both are the calling thread's.
  template <class Body, class Fold>
  void run(ThreadPool& pool, const Body& body, const Fold& fold) {
    pool.parallel_for(pool.threads(), [&](int64_t worker, int thread) {
      const int64_t first = even_range(slices_, pool.threads(), worker).begin;
      int64_t done = -1;  // the slice taken last, if this thread has taken all of its half up to it
      for (int64_t i = 0; i < slices_; ++i) {
        const int64_t slice = (first + i) % slices_;
        if (queue_[slice].owned.exchange(true, std::memory_order_relaxed)) continue;
        done = take_slice(slice, done, body, fold, thread);
      }
      help(body, thread);
    });
    list_additions();
  }

  // After run(): add(to, from) for every two places that are left to be added, in order; then place 0 has the total.
  template <class F>
  void for_each_addition(const F& add) const {
    for (int64_t i = 0; i < additions_count_; ++i) add(additions_[i].to, additions_[i].from);
  }

 private:
  enum class Side { Front, Back };
  struct Left {  // blocks that nobody has taken
    int32_t begin, end;
  };
  struct alignas(64) Queue {
    std::atomic<uint64_t> left{0};  // a Left: as a struct it is not lock-free for clang
    std::atomic<bool> owned{false};
    int64_t place = -1;  // -1: folded into that of the half's first
  };
  struct Taken {
    int64_t slice = -1, block = -1;
  };
  struct Addition {
    int64_t to, from;
  };

  Left left_of(int64_t slice) const {
    return std::bit_cast<Left>(queue_[slice].left.load(std::memory_order_relaxed));
  }
  int64_t half_begin(int64_t slice) const { return slice < slices_ / 2 ? 0 : slices_ / 2; }

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

  // Returns the slice, or -1 if this thread has not taken all slices of the half so far. Nobody has helped with one that is
  // folded here: help begins when there are no more slices, and each thread is in its last one.
  template <class Body, class Fold>
  int64_t take_slice(int64_t slice, int64_t done, const Body& body, const Fold& fold, int thread) {
    const int64_t begin = half_begin(slice), second = begin + 1;
    const bool follows = slice > begin && done == slice - 1;
    if (follows && slice > second) {
      fold(begin, second);
      queue_[done].place = -1;
    }
    const int64_t place = follows ? second : slice;
    queue_[slice].place = place;
    for (int64_t block; (block = take(slice, Side::Front)) >= 0;)
      body(slice, block, place, block > 0, thread);
    return follows || slice == begin ? slice : -1;
  }

  template <class Body>
  void help(const Body& body, int thread) {
    int64_t spare = -1;
    for (int64_t slice; (slice = longest()) >= 0;) {
      if (spare < 0) spare = used_.fetch_add(1, std::memory_order_relaxed);
      if (spare >= spares_) return;
      const int64_t block = take(slice, Side::Back);
      if (block < 0) continue;
      body(slice, block, slices_ + spare, false, thread);
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

  // Helped blocks to their slices, the slices of each half to its first, the second half to the first.
  void list_additions() {
    const auto list = [&](int64_t to, int64_t from) { additions_[additions_count_++] = {to, from}; };
    for (int64_t slice = 0; slice < slices_; ++slice) {
      int64_t block = left_of(slice).end;
      for (int64_t spare; (spare = find(slice, block)) >= 0; ++block)
        list(queue_[slice].place, slices_ + spare);
    }
    for (int64_t slice = 0; slice < slices_; ++slice) {
      const int64_t begin = half_begin(slice), place = queue_[slice].place;
      if (slice != begin && place >= 0) list(begin, place);
    }
    if (slices_ > 1) list(0, slices_ / 2);
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
  Addition additions_[kMaxSlices + kMaxSpares];
  int64_t additions_count_ = 0;
};

}  // namespace pwdice::cpu
