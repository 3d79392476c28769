// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>

namespace pwdice::test {

// How often this process asked the C library for memory so far, on any thread: malloc, calloc, realloc, the
// aligned variants, and through them operator new. An executable counts by compiling allocation_count.cpp in.
uint64_t allocation_count() noexcept;
uint64_t allocated_bytes() noexcept;  // the sum of those requests, whatever has been given back since

// How often it took a lock of the C library, free or not: a mutex or a spin lock, or a read-write lock without a time
// limit, and through them std::mutex and the like. Who waits on a condition has taken one before.
uint64_t lock_count() noexcept;

// False under a sanitizer, which has to own malloc and the locks itself: there a test can only check its other claims.
bool allocations_are_counted() noexcept;

}  // namespace pwdice::test
