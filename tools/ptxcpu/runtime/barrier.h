// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Block-wide barriers (bar.sync, bar.red, bar.arrive) with sixteen names.
#pragma once

#include <cstdint>

#include "thread.h"

namespace ptxcpu {

enum class Reduce : uint8_t { k_popc, k_and, k_or };

// expected 0 means every thread of the block that has not exited, as __syncthreads() does.
void barrier_sync(Thread* thread, int site, uint32_t id, uint32_t expected);
void barrier_arrive(Thread* thread, int site, uint32_t id, uint32_t expected);
uint32_t barrier_reduce(Thread* thread, int site, uint32_t id, uint32_t expected, bool value, Reduce mode);

void reset_barriers(Block* block);

// A thread that exits lowers the number the others wait for.
void release_barriers_after_exit(Block* block);

}  // namespace ptxcpu
