// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// A device that is too old for the code. ctest runs this with PTXCPU_DEVICE_* set.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "kernels.h"

namespace {

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
