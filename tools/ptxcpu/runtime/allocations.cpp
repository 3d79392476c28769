// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "allocations.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "options.h"

namespace ptxcpu {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kFence = 256;
constexpr size_t kQuarantineBytes = size_t(64) << 20;

// Freed memory stays mapped and known for a while, so that a late use of it can be named.
struct Heap {
  std::recursive_mutex mutex;
  std::map<uint64_t, Allocation> allocations;
  std::deque<uint64_t> quarantine;
  size_t quarantined = 0, device_bytes = 0;
};

Heap& heap() {
  static auto* instance = new Heap;  // outlives static destructors that free device memory
  return *instance;
}

bool is_device(MemoryKind kind) { return kind == MemoryKind::kDevice || kind == MemoryKind::kManaged; }

void shrink_quarantine(Heap& h) {
  while (h.quarantined > kQuarantineBytes && !h.quarantine.empty()) {
    const uint64_t base = h.quarantine.front();
    h.quarantine.pop_front();
    const auto found = h.allocations.find(base);
    h.quarantined -= found->second.size;
    std::free(reinterpret_cast<void*>(base - kFence));
    h.allocations.erase(found);
  }
}

Allocation* find(Heap& h, uint64_t address) {
  auto above = h.allocations.upper_bound(address);
  return above == h.allocations.begin() ? nullptr : &std::prev(above)->second;
}

void insert(Heap& h, uint64_t base, size_t bytes, MemoryKind kind) {
  Allocation allocation{base, bytes, kind, true, {}};
  if (kind == MemoryKind::kDevice && options().check_global_init) allocation.written.resize(bytes);
  h.allocations[base] = std::move(allocation);
}

}  // namespace

void* allocate(size_t bytes, MemoryKind kind) {
  const size_t total = (bytes + 2 * kFence + kAlignment - 1) / kAlignment * kAlignment;
  auto* memory = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, total));
  if (!memory) return nullptr;
  std::memset(memory, 0xff, total);
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  insert(h, reinterpret_cast<uint64_t>(memory) + kFence, bytes, kind);
  if (is_device(kind)) h.device_bytes += bytes;
  return memory + kFence;
}

bool release(void* pointer, MemoryKind kind) {
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  const auto found = h.allocations.find(reinterpret_cast<uint64_t>(pointer));
  if (found == h.allocations.end() || !found->second.live) return false;
  Allocation& allocation = found->second;
  if (allocation.kind != kind && !(is_device(kind) && is_device(allocation.kind))) return false;
  allocation.live = false;
  if (is_device(allocation.kind)) h.device_bytes -= allocation.size;
  h.quarantined += allocation.size;
  h.quarantine.push_back(allocation.base);
  shrink_quarantine(h);
  return true;
}

void register_allocation(void* pointer, size_t bytes, MemoryKind kind) {
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  insert(h, reinterpret_cast<uint64_t>(pointer), bytes, kind);
}

bool unregister_allocation(void* pointer) {
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  return h.allocations.erase(reinterpret_cast<uint64_t>(pointer)) > 0;
}

const Allocation* find_allocation(uint64_t address) {
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  return find(h, address);
}

bool is_allocated(const void* pointer, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const Allocation* allocation = find_allocation(address);
  return allocation && allocation->live && address - allocation->base + bytes <= allocation->size;
}

void mark_written(const void* pointer, size_t bytes) {
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  const auto address = reinterpret_cast<uint64_t>(pointer);
  Allocation* allocation = find(h, address);
  if (!allocation || allocation->written.empty()) return;
  for (size_t i = address - allocation->base; bytes-- && i < allocation->size; ++i)
    allocation->written[i] = true;
}

void mark_copied(const void* target, const void* source, size_t bytes) {
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  const auto to = reinterpret_cast<uint64_t>(target), from = reinterpret_cast<uint64_t>(source);
  Allocation* target_allocation = find(h, to);
  const Allocation* source_allocation = find(h, from);
  if (!target_allocation || target_allocation->written.empty()) return;
  const bool tracked = source_allocation &&
                       from - source_allocation->base + bytes <= source_allocation->size &&
                       !source_allocation->written.empty();
  if (!tracked) return mark_written(target, bytes);
  for (size_t i = 0; i < bytes && to - target_allocation->base + i < target_allocation->size; ++i)
    target_allocation->written[to - target_allocation->base + i] =
        source_allocation->written[from - source_allocation->base + i];
}

bool is_written(const Allocation& allocation, uint64_t address, size_t bytes) {
  if (allocation.written.empty()) return true;
  for (size_t i = address - allocation.base; bytes--; ++i)
    if (!allocation.written[i]) return false;
  return true;
}

size_t allocated_device_bytes() {
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  return h.device_bytes;
}

void release_all_device_memory() {
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  std::vector<uint64_t> bases;
  for (const auto& [base, allocation] : h.allocations)
    if (allocation.live && is_device(allocation.kind)) bases.push_back(base);
  for (const uint64_t base : bases) release(reinterpret_cast<void*>(base), MemoryKind::kDevice);
}

}  // namespace ptxcpu
