// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Shared-memory checks: races between and within warps, uninitialised reads, unfinished copies.
#include <algorithm>

#include "checks.h"
#include "fault.h"
#include "options.h"

namespace ptxcpu {
namespace {

uint32_t warp_of(uint32_t thread_plus_one) { return (thread_plus_one - 1) / 32; }

const char* verb(Access kind) { return is_write(kind) ? "write" : "read"; }

void forget_old_epoch(ShadowWord& word, uint32_t epoch) {
  if (word.epoch == epoch) return;
  word.epoch = epoch;
  word.reading_warps = 0;
  word.writer = word.last_reader = 0;
  word.written_bytes = word.read_bytes = 0;
}

void check_writer(Thread* thread, int site, const ShadowWord& word, uint32_t offset, uint8_t bytes,
                  Access kind) {
  if (!word.writer || word.writer == thread->index + 1 || !(word.written_bytes & bytes)) return;
  if (is_strong(kind) && word.strong_write) return;
  const bool same_warp = warp_of(word.writer) == thread->index / 32;
  if (!same_warp && options().check_shared_races)
    fault(thread, site, Fault::kRace,
          "shared memory race: %s at offset %u conflicts with a write by thread %u; a barrier is missing "
          "between them",
          verb(kind), offset, word.writer - 1u);
  // Two lanes storing to one word is defined (one of them wins); reading it needs __syncwarp().
  if (same_warp && !is_write(kind) && word.writer_warp_epoch == thread->warp->epoch &&
      options().check_warp_races)
    fault(thread, site, Fault::kRace,
          "shared memory race within a warp: read at offset %u of what thread %u wrote; __syncwarp() is "
          "missing",
          offset, word.writer - 1u);
}

void check_readers(Thread* thread, int site, const ShadowWord& word, uint32_t offset, uint8_t bytes,
                   Access kind) {
  if (!(word.read_bytes & bytes) || is_strong(kind)) return;
  const uint32_t warp = thread->index / 32;
  if ((word.reading_warps & ~(1u << warp)) && options().check_shared_races)
    fault(thread, site, Fault::kRace,
          "shared memory race: write at offset %u conflicts with a read by warp %d; a barrier is missing "
          "between them",
          offset, __builtin_ctz(word.reading_warps & ~(1u << warp)));
  const bool lane_read_it = word.last_reader && word.last_reader != thread->index + 1 &&
                            warp_of(word.last_reader) == warp &&
                            word.reader_warp_epoch == thread->warp->epoch;
  if (lane_read_it && options().check_warp_races)
    fault(thread, site, Fault::kRace,
          "shared memory race within a warp: write at offset %u of what thread %u read; __syncwarp() is "
          "missing",
          offset, word.last_reader - 1u);
}

void record(Thread* thread, ShadowWord& word, uint8_t bytes, Access kind) {
  if (is_write(kind)) {
    word.writer = uint16_t(thread->index + 1);
    word.writer_warp_epoch = thread->warp->epoch;
    word.written_bytes = bytes;
    word.strong_write = is_strong(kind);
    word.initialized |= bytes;
  } else {
    word.reading_warps |= 1u << (thread->index / 32);
    word.last_reader = uint16_t(thread->index + 1);
    word.reader_warp_epoch = thread->warp->epoch;
    word.read_bytes |= bytes;
  }
}

template <class Function>
void for_each_word(SharedShadow* shadow, uint32_t offset, uint32_t bytes, Function function) {
  for (uint32_t at = offset; at < offset + bytes;) {
    const uint32_t end = std::min(offset + bytes, (at & ~3u) + 4);
    const auto mask = uint8_t(((1u << (end - at)) - 1) << (at & 3));
    function(shadow->words[at / 4], at, mask);
    at = end;
  }
}

}  // namespace

void check_shared(Thread* thread, int site, uint32_t offset, uint32_t bytes, Access kind) {
  SharedShadow* shadow = thread->block->shadow;
  for_each_word(shadow, offset, bytes, [&](ShadowWord& word, uint32_t at, uint8_t mask) {
    forget_old_epoch(word, shadow->epoch);
    // The usual case in the inner loops: a read of what was written before the last barrier.
    const bool settled = word.writer == 0 && word.pending == 0 && (word.initialized & mask) == mask;
    if (kind == Access::kRead && settled) return record(thread, word, mask, kind);
    if (word.pending & mask)
      fault(thread, site, Fault::kRace,
            "shared memory race: %s at offset %u of an asynchronous copy that has not been waited for",
            verb(kind), at);
    const bool uses_value = kind == Access::kRead || kind == Access::kStrongRead || kind == Access::kAtomic;
    if (uses_value && (word.initialized & mask) != mask && options().check_shared_init)
      fault(thread, site, Fault::kUninitialized, "read of uninitialised shared memory at offset %u", at);
    check_writer(thread, site, word, at, mask, kind);
    if (is_write(kind)) check_readers(thread, site, word, at, mask, kind);
    record(thread, word, mask, kind);
  });
}

void reset_shadow(Block* block) {
  if (!block->shadow) return;
  block->shadow->epoch = 1;
  block->shadow->words.assign(block->shared_bytes / 4 + 1, ShadowWord{});
}

void advance_shared_epoch(Block* block) {
  if (block->shadow) ++block->shadow->epoch;
}

void begin_async_write(Thread* thread, const AsyncCopy& copy) {
  const auto offset = uint32_t(copy.target - thread->block->shared);
  for_each_word(thread->block->shadow, offset, copy.bytes + copy.zeros,
                [](ShadowWord& word, uint32_t, uint8_t mask) { word.pending |= mask; });
}

void complete_async_write(Thread* thread, const AsyncCopy& copy) {
  SharedShadow* shadow = thread->block->shadow;
  if (!shadow) return;
  const auto offset = uint32_t(copy.target - thread->block->shared);
  for_each_word(shadow, offset, copy.bytes + copy.zeros, [&](ShadowWord& word, uint32_t, uint8_t mask) {
    forget_old_epoch(word, shadow->epoch);
    word.pending &= uint8_t(~mask);
    record(thread, word, mask, Access::kWrite);
  });
}

}  // namespace ptxcpu
