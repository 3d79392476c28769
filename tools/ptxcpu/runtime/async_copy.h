// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// cp.async: copies are performed when they are waited for, so a missing wait shows stale data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "access.h"

namespace ptxcpu {

void perform_copies(Thread* thread, size_t count);
void mark_async_pending(Thread* thread, const AsyncCopy& copy);

// n < 0 waits for all copies, committed or not.
void async_wait(Thread* thread, int groups_left);

inline void async_commit(Thread* thread) {
  thread->async_groups.push_back(uint32_t(thread->async_copies.size()));
}

static inline void async_copy(Thread* T, int site, uint64_t target, uint64_t source, uint32_t bytes,
                              uint32_t source_bytes) {
  if (source_bytes > bytes) source_bytes = bytes;
  if (source & (bytes - 1)) misaligned(T, site, source, bytes);
  uint8_t* const to = access_shared(T, site, target, bytes, Access::kWrite);
  if (source_bytes == bytes) {
    access_global(T, site, source, bytes, Access::kRead);
  } else {
    for (uint32_t i = 0; i < source_bytes; ++i) access_global(T, site, source + i, 1, Access::kRead);
  }
  const AsyncCopy copy{to, reinterpret_cast<const uint8_t*>(source), source_bytes, bytes - source_bytes,
                       site};
  T->async_copies.push_back(copy);
#if PTXCPU_CHECK
  mark_async_pending(T, copy);
#endif
}

}  // namespace ptxcpu
