// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Memory as translated code sees it. Every access becomes a checked host pointer first.
//
// Global memory is host memory at the same address. Shared addresses are offsets into the block's
// window; generic addresses of shared memory are host addresses inside that window.
#pragma once

#include <cstdint>
#include <cstring>

#include "fault.h"
#include "thread.h"

#ifndef PTXCPU_CHECK
#define PTXCPU_CHECK 0
#endif
#ifndef PTXCPU_COUNT
#define PTXCPU_COUNT 0
#endif

#if PTXCPU_COUNT
#define PTXCPU_COUNT_UNIT(unit) ++T->block->unit_counts[unit]
#else
#define PTXCPU_COUNT_UNIT(unit) (void)0
#endif

namespace ptxcpu {

constexpr uint32_t kStackBytes = 256 * 1024;

// Strong accesses (volatile, relaxed, acquire, release) and atomics do not race with one another.
// A fragment read (ldmatrix) may fetch memory nobody wrote: pipelines load one stage too many, and
// tiles at an edge multiply rows that are never stored. It yields NaN, which shows if it is used.
enum class Access : uint8_t { kRead, kFragmentRead, kWrite, kAtomic, kStrongRead, kStrongWrite };
inline bool is_write(Access kind) {
  return kind == Access::kWrite || kind == Access::kAtomic || kind == Access::kStrongWrite;
}
inline bool is_strong(Access kind) { return kind >= Access::kAtomic; }
enum class Space : uint8_t { kGlobal, kShared };

[[noreturn]] void misaligned(Thread* thread, int site, uint64_t address, uint32_t bytes);
[[noreturn]] void outside_shared(Thread* thread, int site, uint64_t offset, uint32_t bytes);
void check_global(Thread* thread, int site, uint64_t address, uint32_t bytes, Access kind);
void check_shared(Thread* thread, int site, uint32_t offset, uint32_t bytes, Access kind);
void count_access(Thread* thread, int site, Space space, uint64_t address, uint32_t bytes);

extern bool g_watch_global;  // a check wants to see every global access, not only unknown ranges

// The functions below depend on how the including file is compiled: internal linkage keeps a
// program of checked and unchecked modules within the one-definition rule.

template <class V>
static inline V peek(const uint8_t* pointer) {
  V value;
  std::memcpy(&value, pointer, sizeof value);
  return value;
}
template <class V>
static inline void poke(uint8_t* pointer, V value) {
  std::memcpy(pointer, &value, sizeof value);
}

static inline void note_progress(Thread* T, Access kind) {
  if (kind == Access::kWrite || kind == Access::kStrongWrite) ++T->block->progress;
}

static inline uint8_t* access_global(Thread* T, int site, uint64_t address, uint32_t bytes, Access kind) {
  if (__builtin_expect(address & (bytes - 1), 0)) misaligned(T, site, address, bytes);
#if PTXCPU_COUNT
  if (T->warp->counters) count_access(T, site, Space::kGlobal, address, bytes);
#endif
#if PTXCPU_CHECK
  const CachedRange& range = T->block->ranges[uint32_t(site) % Block::kRangeCache];
  const uint64_t offset = address - range.base;
  if (__builtin_expect(offset > range.size || range.size - offset < bytes || g_watch_global, 0))
    check_global(T, site, address, bytes, kind);
#endif
  note_progress(T, kind);
  return reinterpret_cast<uint8_t*>(address);
}

static inline uint8_t* access_shared(Thread* T, int site, uint64_t offset, uint32_t bytes, Access kind) {
  const Block* block = T->block;
  if (__builtin_expect(offset & (bytes - 1), 0)) misaligned(T, site, offset, bytes);
  if (__builtin_expect(offset + bytes > block->shared_bytes || offset > block->shared_bytes, 0))
    outside_shared(T, site, offset, bytes);
#if PTXCPU_COUNT
  if (T->warp->counters) count_access(T, site, Space::kShared, offset, bytes);
#endif
#if PTXCPU_CHECK
  check_shared(T, site, uint32_t(offset), bytes, kind);
#endif
  note_progress(T, kind);
  return block->shared + offset;
}

static inline bool is_shared(const Thread* T, uint64_t address) {
  return address - reinterpret_cast<uint64_t>(T->block->shared) < T->block->shared_bytes;
}
static inline bool is_local(const Thread* T, uint64_t address) {
  return address - reinterpret_cast<uint64_t>(T->stack) < kStackBytes;
}
static inline bool is_global(const Thread* T, uint64_t address) {
  return !is_shared(T, address) && !is_local(T, address);
}

static inline uint8_t* access_generic(Thread* T, int site, uint64_t address, uint32_t bytes, Access kind) {
  if (is_shared(T, address))
    return access_shared(T, site, address - reinterpret_cast<uint64_t>(T->block->shared), bytes, kind);
  // Parameters passed by value may be addressed generically: they live in the launch.
  const uint64_t param = address - reinterpret_cast<uint64_t>(T->block->params);
  if (is_local(T, address) || param < T->block->launch->kernel->param_bytes) {
    if (address & (bytes - 1)) misaligned(T, site, address, bytes);
    return reinterpret_cast<uint8_t*>(address);
  }
  return access_global(T, site, address, bytes, kind);
}

}  // namespace ptxcpu
