// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Fibers: a stack per CUDA thread and a switch between two of them.
#pragma once

#include <cstdint>

#include "thread.h"

namespace ptxcpu {

// Saves the current stack pointer in *from and continues on `to`.
extern "C" void ptxcpu_switch_stack(void** from, void* to);

// Stacks are kept for the life of the process: mapping them costs more than a small launch.
uint8_t* acquire_stack();
void release_stack(uint8_t* stack);

// Makes the thread start in `entry` when it is first resumed.
void prepare_fiber(Thread* thread, void (*entry)());

// Runs the thread until it yields or ends. Called by the scheduler.
void resume(Thread* thread);

// The thread being started; valid only at the beginning of `entry`.
Thread* starting_thread();

// Back to the scheduler; returns when the thread is resumed.
inline void yield_to_scheduler(Thread* thread) {
  ptxcpu_switch_stack(&thread->stack_pointer, thread->block->scheduler_stack_pointer);
}

}  // namespace ptxcpu
