// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// The pretended device. The environment may change it:
//   PTXCPU_DEVICE_CC=8.6  PTXCPU_DEVICE_SMS=4  PTXCPU_DEVICE_MEMORY=8192 (MiB)  PTXCPU_DEVICE_NAME=...
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ptxcpu {

struct Device {
  int major, minor;
  int multiprocessors;
  size_t memory_bytes;
  std::string name;
  // What the programming guide lists for the compute capability.
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  size_t shared_per_multiprocessor;
  size_t shared_per_block_optin;
};

constexpr size_t kSharedPerBlock = 48 * 1024;
constexpr int kThreadsPerBlock = 1024;

const Device& device();
int current_device();  // of this thread

}  // namespace ptxcpu
