// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "fiber.h"

#include <sys/mman.h>

#include <mutex>
#include <new>
#include <vector>

#include "access.h"

#ifndef __x86_64__
#error "ptxcpu runs on x86-64: fibers and rounding are written for it"
#endif

// Saves the registers the System V ABI makes the callee's, and swaps stacks.
asm(R"(
.text
.globl ptxcpu_switch_stack
.type ptxcpu_switch_stack,@function
ptxcpu_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size ptxcpu_switch_stack,.-ptxcpu_switch_stack
)");

namespace ptxcpu {
namespace {

constexpr uint32_t kGuardBytes = 4096;
constexpr int kSavedRegisters = 6;

std::mutex g_stacks_mutex;
std::vector<uint8_t*> g_free_stacks;
thread_local Thread* t_starting = nullptr;

uint8_t* map_stack() {
  void* memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kGuardBytes, PROT_NONE);  // a kernel that overruns its stack stops there
  return static_cast<uint8_t*>(memory) + kGuardBytes;
}

}  // namespace

uint8_t* acquire_stack() {
  const std::lock_guard lock(g_stacks_mutex);
  if (g_free_stacks.empty()) return map_stack();
  uint8_t* stack = g_free_stacks.back();
  g_free_stacks.pop_back();
  return stack;
}

void release_stack(uint8_t* stack) {
  const std::lock_guard lock(g_stacks_mutex);
  g_free_stacks.push_back(stack);
}

void prepare_fiber(Thread* thread, void (*entry)()) {
  // Tops of stacks that are equal modulo the cache's way size would share a few cache sets.
  const uint32_t colour = (thread->index * 192) % 8192;
  uint8_t* top = thread->stack + kStackBytes - 64 - colour / 64 * 64;
  auto* slot = reinterpret_cast<uint64_t*>(top) - 1;  // entry sees the alignment of a fresh call
  *slot = 0;
  *--slot = reinterpret_cast<uint64_t>(entry);
  for (int i = 0; i < kSavedRegisters; ++i) *--slot = 0;
  thread->stack_pointer = slot;
}

void resume(Thread* thread) {
  t_starting = thread;
  ptxcpu_switch_stack(&thread->block->scheduler_stack_pointer, thread->stack_pointer);
}

Thread* starting_thread() { return t_starting; }

}  // namespace ptxcpu
