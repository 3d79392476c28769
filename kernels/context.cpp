// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "context.h"

#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

#include "backends.h"
#include "check.h"
#include "cpu/parallel.h"
#include "memory.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace pwdice {
namespace {

int usable_cores() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  const unsigned n = std::thread::hardware_concurrency();
  return n == 0 ? 1 : static_cast<int>(n);
}

}  // namespace

void* Scratch::take_bytes(size_t bytes, const char* op) {
  const size_t need = rounded(bytes);
  if (need > capacity_ - used_) {
    fail(ErrorCode::OutOfMemory,
         "{}: needs {} bytes of scratch on top of {} in use, the Context has {}; for all of it call "
         "reserve_scratch with the scratch_bytes of the op that was called",
         op, need, used_, capacity_);
  }
  std::byte* memory = base_ + used_;
  used_ += need;
  if (used_ > peak_) peak_ = used_;
  return memory;
}

Context::Context(const ContextOptions& options) : options_(options) {
  PWDICE_CHECK(options.threads >= 0 && options.threads <= 1024, "context: threads is {}, expected 0 to 1024",
               options.threads);
  check_choice("context", "backend", options.backend, Backend::Cuda);
  check_choice("context", "score_precision", options.score_precision, ScorePrecision::Bf16);
  check_choice("context", "gemm", options.gemm, GemmLibrary::CuBlas);
  if (options_.threads == 0) options_.threads = usable_cores();
  if (on_gpu()) {
    cuda_.reset(cuda::create_state(options_));
    options_.threads = 1;
  } else {
    cpu_target();  // throws here what would otherwise be an illegal instruction in the first op
  }
  pool_ = std::make_unique<cpu::ThreadPool>(options_.threads);
  scratch_memory_ = static_cast<std::byte*>(allocate(*this, options_.scratch_bytes));
  scratch_ = Scratch(scratch_memory_, Scratch::rounded(options_.scratch_bytes));
}

void Context::reserve_scratch(size_t bytes) {
  if (bytes <= scratch_.capacity()) return;
  PWDICE_CHECK(scratch_.used() == 0, "reserve_scratch: an op is using {} bytes of scratch", scratch_.used());
  PWDICE_CHECK(!scratch_was_captured_,
               "reserve_scratch: a step has been captured with the {} bytes of scratch there are",
               scratch_.capacity());
  synchronise();
  auto* const memory = static_cast<std::byte*>(allocate(*this, bytes));
  release(*this, std::exchange(scratch_memory_, memory));
  scratch_ = Scratch(memory, Scratch::rounded(bytes), scratch_.peak());
}

Context::~Context() { release(*this, scratch_memory_); }

int Context::threads() const { return options_.threads; }

void Context::synchronise() {
  if (on_gpu()) cuda::synchronise(*cuda_);
}

CudaAvailability cuda_availability() { return cuda::availability(); }

}  // namespace pwdice
