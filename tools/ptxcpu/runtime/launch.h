// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Runs the blocks of a launch, each as a set of fibers that yield at barriers and warp operations.
#pragma once

#include <cstdint>

#include "registry.h"

namespace ptxcpu {

struct LaunchShape {
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared_bytes;
};

// Executes the whole grid; returns 0 or the cudaError_t of the first fault. `params` is the
// parameter buffer laid out as the kernel declares it. Launches run one at a time.
int run_launch(const KernelRef& kernel, const LaunchShape& shape, const uint8_t* params);

}  // namespace ptxcpu
