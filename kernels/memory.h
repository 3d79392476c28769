// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstddef>

#include "context.h"

namespace pwdice {

// Memory of a Context's backend, so that nothing above the kernels names CUDA. The caller owns what it
// allocates; host/arena.h wraps it. All copies and fills are ordered with the Context's ops.
void* allocate(Context& ctx, size_t bytes);  // aligned to 256 bytes, contents undefined; throws OutOfMemory
void release(Context& ctx, void* memory) noexcept;

void copy_bytes(Context& ctx, void* to, const void* from, size_t bytes);    // within the backend
void upload(Context& ctx, void* to, const void* host, size_t bytes);        // returns when `host` may be reused
void download(Context& ctx, void* host, const void* from, size_t bytes);    // returns when `host` is filled
void fill_zero(Context& ctx, void* memory, size_t bytes);
void fill(Context& ctx, Vec<float> values, float value);

// How often the two costly things happened since the process began; tests count that a step does neither.
struct MemoryEvents {
  uint64_t allocations = 0, downloads = 0;
};
MemoryEvents memory_events() noexcept;

}  // namespace pwdice
