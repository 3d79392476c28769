// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "../backends.h"

namespace pwdice::cuda {

class CuBlas;

// What a Context for the CUDA backend owns: a stream on one device, and whether that device still answers.
struct State {
  State(const ContextOptions& options);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Throws DeviceLost when an earlier error made the device unusable.
  void require_usable(const char* op) const;

  int device;
  int compute_capability = 0;  // 10 major + minor
  cudaStream_t stream = nullptr;
  bool owns_stream = false, has_pools = false, capturing = false;
  bool synchronise_launches;
  std::string lost;                // what the device died of; empty while it lives
  std::unique_ptr<CuBlas> cublas;  // only when ContextOptions::gemm asks for it
};

struct Graph {
  cudaGraphExec_t exec = nullptr;
  int device = 0;
};

// Makes the Context's device current and gives the caller its own back at the end: we are guests.
class DeviceScope {
 public:
  DeviceScope(const State& state, const char* op);
  explicit DeviceScope(int device) noexcept;
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = -1;
};

ErrorCode code_of(cudaError_t error) noexcept;

// Throws when the thread's last error is not read yet, and leaves it unread: it is not ours.
void require_no_error(State& state, const char* op);

// Throws the Error that stands for `error`; what: the op and the values. State remembers a lost device.
[[noreturn]] void raise(State& state, cudaError_t error, const std::string& what);

}  // namespace pwdice::cuda

// PWDICE_CUDA_CHECK(state, cudaMemsetAsync(...), "fill_zero: {} bytes", bytes);
#define PWDICE_CUDA_CHECK(state, call, pattern, ...)                                                \
  do {                                                                                              \
    if (const cudaError_t pwdice_error = (call); pwdice_error != cudaSuccess)                       \
      ::pwdice::cuda::raise(state, pwdice_error, ::pwdice::format_message(pattern, {__VA_ARGS__})); \
  } while (false)
