// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The functions below come before the C library's own in symbol lookup and count on the way to its internals.
// glibc exports those of memory under the names __libc_*, so no dlsym is needed, which would itself allocate; those of
// locks are looked up when the first is taken.
#include "allocation_count.h"

#include <dlfcn.h>
#include <pthread.h>

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

std::atomic<uint64_t> count{0}, bytes_asked{0}, locks{0};

}  // namespace

namespace pwdice::test {

uint64_t allocation_count() noexcept { return count.load(); }
uint64_t allocated_bytes() noexcept { return bytes_asked.load(); }
uint64_t lock_count() noexcept { return locks.load(); }
bool allocations_are_counted() noexcept { return PWDICE_COUNT_ALLOCATIONS != 0; }

}  // namespace pwdice::test

#if PWDICE_COUNT_ALLOCATIONS

namespace {

void add(size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  bytes_asked.fetch_add(bytes, std::memory_order_relaxed);
}

// One per function of the C library, `name` below.
template <class Lock>
int take(std::atomic<void*>& real, const char* name, Lock* lock) {
  locks.fetch_add(1, std::memory_order_relaxed);
  void* function = real.load(std::memory_order_relaxed);
  if (function == nullptr) real.store(function = dlsym(RTLD_NEXT, name), std::memory_order_relaxed);
  return reinterpret_cast<int (*)(Lock*)>(function)(lock);
}

std::atomic<void*> real_mutex_lock, real_mutex_trylock, real_rdlock, real_wrlock, real_spin_lock;

}  // namespace

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t items, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  add(bytes);
  return __libc_malloc(bytes);
}

void* calloc(size_t items, size_t bytes) {
  add(items * bytes);
  return __libc_calloc(items, bytes);
}

void* realloc(void* memory, size_t bytes) {
  add(bytes);
  return __libc_realloc(memory, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  add(bytes);
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) { return take(real_mutex_lock, "pthread_mutex_lock", mutex); }
int pthread_mutex_trylock(pthread_mutex_t* mutex) { return take(real_mutex_trylock, "pthread_mutex_trylock", mutex); }
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) { return take(real_rdlock, "pthread_rwlock_rdlock", lock); }
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) { return take(real_wrlock, "pthread_rwlock_wrlock", lock); }
int pthread_spin_lock(pthread_spinlock_t* lock) { return take(real_spin_lock, "pthread_spin_lock", lock); }

}  // extern "C"

#endif
