// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The functions below come before the C library's own in symbol lookup and count on the way to its internals.
// glibc exports those under the names __libc_*, so no dlsym is needed, which would itself allocate.
#include "allocation_count.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PWDICE_COUNT_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PWDICE_COUNT_ALLOCATIONS 0
#endif
#endif
#ifndef PWDICE_COUNT_ALLOCATIONS
#ifdef __GLIBC__
#define PWDICE_COUNT_ALLOCATIONS 1
#else
#define PWDICE_COUNT_ALLOCATIONS 0
#endif
#endif

namespace {

std::atomic<uint64_t> count{0};

}  // namespace

namespace pwdice::test {

uint64_t allocation_count() noexcept { return count.load(); }
bool allocations_are_counted() noexcept { return PWDICE_COUNT_ALLOCATIONS != 0; }

}  // namespace pwdice::test

#if PWDICE_COUNT_ALLOCATIONS

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t items, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}

void* calloc(size_t items, size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(items, bytes);
}

void* realloc(void* memory, size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"

#endif
