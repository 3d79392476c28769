// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Faults end a launch: they are reported once and surface as an error of the CUDA runtime.
#pragma once

#include <cstdint>

namespace ptxcpu {

struct Thread;

enum class Fault : uint8_t {
  kIllegalAddress,
  kMisaligned,
  kUninitialized,
  kRace,
  kBarrier,
  kWarp,
  kDeadlock,
  kAssert,
  kTrap,
};

// Reports and abandons the whole launch; the calling fiber is never resumed.
[[noreturn, gnu::format(printf, 4, 5)]] void fault(Thread* thread, int site, Fault kind, const char* format,
                                                   ...);

// The same for the scheduler's own stack, which must return normally.
[[gnu::format(printf, 4, 5)]] void report_fault(Thread* thread, int site, Fault kind, const char* format,
                                                ...);

}  // namespace ptxcpu
