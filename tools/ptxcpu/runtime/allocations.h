// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Device memory: what is allocated, what was freed, and (optionally) which bytes were written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptxcpu {

enum class MemoryKind : uint8_t { kDevice, kManaged, kHost, kVariable };

struct Allocation {
  uint64_t base = 0, size = 0;
  MemoryKind kind = MemoryKind::kDevice;
  bool live = true;
  std::vector<bool> written;  // empty: not tracked, counts as written
};

// Memory comes filled with NaN, fenced on both sides. Null if the host has none.
void* allocate(size_t bytes, MemoryKind kind);

// False unless `pointer` is the start of a live allocation of that kind (or kDevice/kManaged mixed).
bool release(void* pointer, MemoryKind kind);

// Memory that others own, such as the variables of a module.
void register_allocation(void* pointer, size_t bytes, MemoryKind kind);
bool unregister_allocation(void* pointer);

// The allocation at or below the address, live or recently freed; null if there is none.
const Allocation* find_allocation(uint64_t address);

// Whether the bytes lie in one live allocation.
bool is_allocated(const void* pointer, size_t bytes);

// Bookkeeping for the check of uninitialised reads; copies carry the state of their source.
void mark_written(const void* pointer, size_t bytes);
void mark_copied(const void* target, const void* source, size_t bytes);
bool is_written(const Allocation& allocation, uint64_t address, size_t bytes);

size_t allocated_device_bytes();
void release_all_device_memory();

}  // namespace ptxcpu
