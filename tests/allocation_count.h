// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>

namespace pwdice::test {

// How often this process asked the C library for memory so far, on any thread: malloc, calloc, realloc, the
// aligned variants, and through them operator new. An executable counts by compiling allocation_count.cpp in.
uint64_t allocation_count() noexcept;

// False under a sanitizer, which has to own malloc itself: there a test can only check its other claims.
bool allocations_are_counted() noexcept;

}  // namespace pwdice::test
