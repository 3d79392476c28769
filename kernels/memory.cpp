// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "memory.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "backends.h"

namespace pwdice {
namespace {

std::atomic<uint64_t> allocation_count{0}, download_count{0};

}  // namespace

void* allocate(Context& ctx, size_t bytes) {
  constexpr size_t kMost = size_t{1} << 62;  // beyond it rounding up could begin again at zero
  if (bytes > kMost) fail(ErrorCode::OutOfMemory, "allocate: {} bytes are not available", bytes);
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  const size_t size = Scratch::rounded(bytes == 0 ? 1 : bytes);
  if (ctx.on_gpu()) return cuda::allocate(ctx.cuda(), size);
  void* memory = std::aligned_alloc(Scratch::kAlign, size);
  if (memory == nullptr) fail(ErrorCode::OutOfMemory, "allocate: {} bytes are not available", size);
  return memory;
}

void release(Context& ctx, void* memory) noexcept {
  if (memory == nullptr) return;
  ctx.on_gpu() ? cuda::release(ctx.cuda(), memory) : std::free(memory);
}

void copy_bytes(Context& ctx, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  if (ctx.on_gpu()) return cuda::copy_bytes(ctx.cuda(), to, from, bytes);
  std::memmove(to, from, bytes);
}

void upload(Context& ctx, void* to, const void* host, size_t bytes) {
  if (bytes == 0) return;
  if (ctx.on_gpu()) return cuda::upload(ctx.cuda(), to, host, bytes);
  std::memcpy(to, host, bytes);
}

void download(Context& ctx, void* host, const void* from, size_t bytes) {
  download_count.fetch_add(1, std::memory_order_relaxed);
  if (bytes == 0) return;
  if (ctx.on_gpu()) return cuda::download(ctx.cuda(), host, from, bytes);
  std::memcpy(host, from, bytes);
}

void fill_zero(Context& ctx, void* memory, size_t bytes) {
  if (bytes == 0) return;
  if (ctx.on_gpu()) return cuda::fill_zero(ctx.cuda(), memory, bytes);
  std::memset(memory, 0, bytes);
}

void fill(Context& ctx, Vec<float> values, float value) {
  if (values.size == 0) return;
  ctx.on_gpu() ? cuda::fill(ctx, values, value) : cpu::fill(ctx, values, value);
}

MemoryEvents memory_events() noexcept {
  return {allocation_count.load(std::memory_order_relaxed), download_count.load(std::memory_order_relaxed)};
}

}  // namespace pwdice
