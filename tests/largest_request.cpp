// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "largest_request.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<size_t> largest{0};
}  // namespace

namespace pwdice::test {

size_t largest_request() noexcept { return largest.load(); }
void reset_largest_request() noexcept { largest = 0; }

}  // namespace pwdice::test

void* operator new(size_t bytes) {
  size_t seen = largest.load();
  while (bytes > seen && !largest.compare_exchange_weak(seen, bytes)) {
  }
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
