// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Global-memory checks: bounds, freed memory, uninitialised reads, races between blocks.
#include "allocations.h"
#include "checks.h"
#include "fault.h"
#include "options.h"

namespace ptxcpu {

bool g_watch_global = false;

namespace {

constexpr uint32_t kNoBlock = ~0u;

struct TouchedWord {
  uint32_t writer = kNoBlock, reader = kNoBlock;
  bool strong_write = false;
};

std::unordered_map<uint64_t, TouchedWord>& touched_words() {
  static std::unordered_map<uint64_t, TouchedWord> instance;
  return instance;
}

const char* verb(Access kind) { return is_write(kind) ? "write" : "read"; }

const Allocation& require_allocation(Thread* thread, int site, uint64_t address, uint32_t bytes,
                                     Access kind) {
  const Allocation* allocation = find_allocation(address);
  if (!allocation)
    fault(thread, site, Fault::kIllegalAddress, "global %s of %u bytes at unallocated address 0x%llx",
          verb(kind), bytes, static_cast<unsigned long long>(address));
  const uint64_t offset = address - allocation->base;
  const bool inside = offset <= allocation->size && allocation->size - offset >= bytes;
  if (!inside)
    fault(thread, site, Fault::kIllegalAddress,
          "global %s of %u bytes out of bounds: offset %llu of an allocation of %llu bytes", verb(kind),
          bytes, static_cast<unsigned long long>(offset), static_cast<unsigned long long>(allocation->size));
  if (!allocation->live)
    fault(thread, site, Fault::kIllegalAddress,
          "use after free: global %s of %u bytes at offset %llu of a freed allocation of %llu bytes",
          verb(kind), bytes, static_cast<unsigned long long>(offset),
          static_cast<unsigned long long>(allocation->size));
  return *allocation;
}

// Blocks of one launch may not exchange plain data. Patterns that order it by fences and an atomic
// ticket look the same here: this check is for kernels whose blocks are meant to be independent.
void check_block_race(Thread* thread, int site, uint64_t address, uint32_t bytes, Access kind) {
  const uint32_t me = thread->block->linear_id;
  for (uint64_t at = address & ~uint64_t(3); at < address + bytes; at += 4) {
    TouchedWord& word = touched_words()[at];
    const bool foreign_write = word.writer != kNoBlock && word.writer != me;
    if (foreign_write && !(is_strong(kind) && word.strong_write))
      fault(thread, site, Fault::kRace, "global memory race between blocks: %s of a word written by block %u",
            verb(kind), word.writer);
    if (is_write(kind) && !is_strong(kind) && word.reader != kNoBlock && word.reader != me)
      fault(thread, site, Fault::kRace, "global memory race between blocks: write of a word read by block %u",
            word.reader);
    if (is_write(kind)) {
      word.writer = me;
      word.strong_write = is_strong(kind);
    } else if (!is_strong(kind)) {
      word.reader = me;
    }
  }
}

}  // namespace

void begin_global_checks() {
  touched_words().clear();
  g_watch_global = options().check_global_init || options().check_block_races;
}

void check_global(Thread* thread, int site, uint64_t address, uint32_t bytes, Access kind) {
  const Allocation& allocation = require_allocation(thread, site, address, bytes, kind);
  thread->block->ranges[uint32_t(site) % Block::kRangeCache] = {allocation.base, allocation.size};
  if (options().check_block_races) check_block_race(thread, site, address, bytes, kind);
  if (!options().check_global_init) return;
  const bool reads = kind != Access::kWrite && kind != Access::kStrongWrite;
  if (reads && !is_written(allocation, address, bytes))
    fault(thread, site, Fault::kUninitialized,
          "read of uninitialised global memory at offset %llu of %llu bytes",
          static_cast<unsigned long long>(address - allocation.base),
          static_cast<unsigned long long>(allocation.size));
  if (is_write(kind)) mark_written(reinterpret_cast<const void*>(address), bytes);
}

void misaligned(Thread* thread, int site, uint64_t address, uint32_t bytes) {
  fault(thread, site, Fault::kMisaligned, "misaligned %u-byte access at 0x%llx", bytes,
        static_cast<unsigned long long>(address));
}

void outside_shared(Thread* thread, int site, uint64_t offset, uint32_t bytes) {
  fault(thread, site, Fault::kIllegalAddress,
        "shared memory access of %u bytes out of bounds: offset %llu of %u", bytes,
        static_cast<unsigned long long>(offset), thread->block->shared_bytes);
}

}  // namespace ptxcpu
