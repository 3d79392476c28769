// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "async_copy.h"

#include "checks.h"

namespace ptxcpu {

void perform_copies(Thread* thread, size_t count) {
  auto& copies = thread->async_copies;
  for (size_t i = 0; i < count; ++i) {
    const AsyncCopy& copy = copies[i];
    std::memcpy(copy.target, copy.source, copy.bytes);
    std::memset(copy.target + copy.bytes, 0, copy.zeros);
    complete_async_write(thread, copy);
  }
  copies.erase(copies.begin(), copies.begin() + std::ptrdiff_t(count));
}

void mark_async_pending(Thread* thread, const AsyncCopy& copy) { begin_async_write(thread, copy); }

void async_wait(Thread* thread, int groups_left) {
  auto& groups = thread->async_groups;
  if (groups_left < 0) {
    perform_copies(thread, thread->async_copies.size());
    groups.clear();
    return;
  }
  if (groups.size() <= size_t(groups_left)) return;
  const size_t done = groups.size() - size_t(groups_left);
  const uint32_t copies = groups[done - 1];
  perform_copies(thread, copies);
  groups.erase(groups.begin(), groups.begin() + std::ptrdiff_t(done));
  for (uint32_t& end : groups) end -= copies;
}

}  // namespace ptxcpu
