// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// A device that is too old for the code.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels.h"

namespace {

// The device is described when it is first asked for, which is later.
[[maybe_unused]] const bool kDescribed = [] {
  setenv("PTXCPU_DEVICE_CC", "7.5", 1);
  setenv("PTXCPU_DEVICE_SMS", "2", 1);
  setenv("PTXCPU_DEVICE_MEMORY", "64", 1);
  setenv("PTXCPU_DEVICE_NAME", "Old device", 1);
  return true;
}();

TEST(OldDeviceTest, IsDescribedByTheEnvironment) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "Old device");
  EXPECT_EQ(properties.major * 10 + properties.minor, 75);
  EXPECT_EQ(properties.multiProcessorCount, 2);
  EXPECT_EQ(properties.totalGlobalMem, size_t(64) << 20);
}

TEST(OldDeviceTest, HasNoKernelImage) {
  kernels::saxpy(1, 1, nullptr, nullptr, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "the error is not sticky";
}

}  // namespace
