// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// State of the stand-in CUDA runtime: one lock, the errors, injected faults, call counts.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace ptxcpu {

class Runtime {
 public:
  std::recursive_mutex& mutex() { return mutex_; }

  // Counts the call; returns an injected or sticky error, or success.
  cudaError_t enter(const char* call);

  // Remembers an error as the thread's last one.
  cudaError_t finish(cudaError_t error);

  // Errors of the device itself stay: every later call returns them.
  void poison(cudaError_t error);
  cudaError_t sticky() const { return sticky_; }
  cudaError_t take_last_error(bool clear);

  void inject(const std::string& call, int nth, cudaError_t error);
  bool has_driver() const;  // false while every call is made to fail
  uint64_t call_count(const std::string& call) const;
  void note(const std::string& event) { ++calls_[event]; }  // counted like a call
  void reset();
  void clear_sticky() { sticky_ = cudaSuccess; }

 private:
  struct Injection {
    std::string call;
    int remaining;  // 0: every call
    cudaError_t error;
  };

  cudaError_t injected(const std::string& call);

  std::recursive_mutex mutex_;
  cudaError_t sticky_ = cudaSuccess;
  std::vector<Injection> injections_;
  std::map<std::string, uint64_t> calls_;
};

Runtime& runtime();

// A device does not recover from these; they stay until the process (or ptxcpu_reset) ends.
bool is_sticky(cudaError_t error);

// The body of every API function: under the lock, after injected and sticky errors.
template <class Body>
cudaError_t api(const char* call, Body body) {
  Runtime& state = runtime();
  const std::lock_guard lock(state.mutex());
  if (const cudaError_t error = state.enter(call)) return state.finish(error);
  try {
    return state.finish(body());
  } catch (const std::bad_alloc&) {
    return state.finish(cudaErrorMemoryAllocation);
  }
}

}  // namespace ptxcpu
