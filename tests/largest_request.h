// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstddef>

namespace pwdice::test {

// The most bytes that one operator new of this program was asked for since the last reset. An executable
// watches itself by compiling largest_request.cpp in.
size_t largest_request() noexcept;
void reset_largest_request() noexcept;

}  // namespace pwdice::test
