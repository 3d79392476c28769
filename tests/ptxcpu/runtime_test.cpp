// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Memory, the pretended device, launches and injected faults of the stand-in runtime.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "device_array.h"
#include "kernels.h"
#include "ptxcpu.h"

namespace {

class RuntimeTest : public testing::Test {
 protected:
  void SetUp() override { ptxcpu_reset(); }
  void TearDown() override { ptxcpu_reset(); }
};

TEST_F(RuntimeTest, DeviceProperties) {
  int count = 0, current = -1, value = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_GE(properties.major, 8);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_STREQ(properties.name, "ptxcpu");
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0), cudaSuccess);
  EXPECT_EQ(value, properties.major);
  size_t free_bytes = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  EXPECT_EQ(total, properties.totalGlobalMem);
}

TEST_F(RuntimeTest, StreamsBelongToTheDeviceTheyWereMadeOn) {
  ptxcpu_set_device_count(2);
  DeviceArray<float> x(random_floats(32)), y(random_floats(32));
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  int device = -1;
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 1);
  kernels::saxpy(32, 2.0f, x.get(), y.get(), stream);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  cudaGetLastError();
  kernels::saxpy(32, 2.0f, x.get(), y.get(), stream);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  const uint64_t before = ptxcpu_call_count("default stream");
  kernels::saxpy(32, 2.0f, x.get(), y.get(), nullptr);
  EXPECT_EQ(ptxcpu_call_count("default stream"), before + 1);
  ptxcpu_set_device_count(1);
}

TEST_F(RuntimeTest, AllocationIsBoundedByTheDevice) {
  size_t free_before = 0, free_after = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free_before, &total), cudaSuccess);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, total + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "an ordinary error is cleared by reading it";
  ASSERT_EQ(cudaMalloc(&memory, 1 << 20), cudaSuccess);
  EXPECT_EQ(cudaMemGetInfo(&free_after, &total), cudaSuccess);
  EXPECT_EQ(free_before - free_after, size_t(1) << 20);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue) << "double free";
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
}

TEST_F(RuntimeTest, CopiesAreChecked) {
  DeviceArray<float> x(std::vector<float>(8, 1));
  std::vector<float> host(9);
  EXPECT_EQ(cudaMemcpy(x.get(), host.data(), 36, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), x.get(), 36, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue) << "host memory";
  EXPECT_EQ(cudaMemcpy2D(host.data(), 8, x.get(), 16, 8, 2, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(cudaMemset2D(x.get(), 16, 0, 4, 2), cudaSuccess);
  EXPECT_EQ(x.download(), (std::vector<float>{0, 1, 1, 1, 0, 1, 1, 1}));
}

TEST_F(RuntimeTest, PointerAttributes) {
  DeviceArray<float> x(4);
  void* pinned = nullptr;
  float local = 0;
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaMallocHost(&pinned, 16), cudaSuccess);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, x.get() + 3), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, &local), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaFree(pinned), cudaErrorInvalidValue) << "pinned memory has its own free";
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(RuntimeTest, MemoryPools) {
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
  uint64_t threshold = UINT64_MAX, read = 0, used = 0;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), cudaSuccess);
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read), cudaSuccess);
  EXPECT_EQ(read, threshold);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  float* memory = nullptr;
  ASSERT_EQ(cudaMallocAsync(reinterpret_cast<void**>(&memory), 400, stream), cudaSuccess);
  kernels::fill_async(memory, 1, 100, stream);
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), cudaSuccess);
  EXPECT_GE(used, 400u);
  EXPECT_EQ(cudaFreeAsync(memory, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
}

TEST_F(RuntimeTest, Symbols) {
  DeviceArray<float> x(std::vector<float>(10, 2));
  kernels::scale_by_constant(x.get(), 10, nullptr);
  EXPECT_EQ(x.download()[9], 2) << "the initial value";
  EXPECT_EQ(kernels::set_scale(2.5f, nullptr), cudaSuccess);
  kernels::scale_by_constant(x.get(), 10, nullptr);
  EXPECT_EQ(x.download()[9], 5);
  EXPECT_EQ(kernels::set_scale(1, nullptr), cudaSuccess);
}

TEST_F(RuntimeTest, LargeSharedMemoryMustBeAskedFor) {
  DeviceArray<float> out(1);
  constexpr size_t kBytes = 64 * 1024;
  EXPECT_EQ(kernels::big_shared(out.get(), kBytes, false, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(kernels::big_shared(out.get(), kBytes, true, nullptr), cudaSuccess);
  EXPECT_EQ(out.download()[0], kBytes / 4 - 1);
  EXPECT_EQ(kernels::big_shared(out.get(), size_t(1) << 20, true, nullptr), cudaErrorInvalidValue);
}

TEST_F(RuntimeTest, SeveralHostThreads) {
  constexpr int kThreads = 4, kN = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      cudaStream_t stream = nullptr;
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
      DeviceArray<float> x(std::vector<float>(kN, float(t))), y(std::vector<float>(kN, 0));
      for (int i = 0; i < 20; ++i) kernels::saxpy(kN, 1, x.get(), y.get(), stream);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(y.download()[kN - 1], 20 * t);
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// ---- injected faults -------------------------------------------------------------------------------

TEST_F(RuntimeTest, InjectedOutOfMemory) {
  void *first = nullptr, *second = nullptr;
  ptxcpu_inject("cudaMalloc", 2, cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&first, 16), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&second, 16), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&second, 16), cudaSuccess) << "it happens once";
  EXPECT_EQ(cudaFree(first), cudaSuccess);
  EXPECT_EQ(cudaFree(second), cudaSuccess);
  EXPECT_EQ(ptxcpu_call_count("cudaMalloc"), 3u);
}

TEST_F(RuntimeTest, NoDriver) {
  for (const cudaError_t error : {cudaErrorInsufficientDriver, cudaErrorNoDevice}) {
    ptxcpu_reset();
    ptxcpu_inject("*", 0, error);
    int count = 7;
    EXPECT_EQ(cudaGetDeviceCount(&count), error);
    EXPECT_EQ(count, 7) << "left unwritten, as the real runtime does";
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreate(&stream), error);
    EXPECT_STRNE(cudaGetErrorString(error), "");
  }
}

TEST_F(RuntimeTest, LaunchFailureIsStickyAndLostDevicesStayLost) {
  DeviceArray<float> x(std::vector<float>(4, 1)), y(std::vector<float>(4, 0));
  for (const cudaError_t error : {cudaErrorLaunchFailure, cudaErrorDevicesUnavailable, cudaErrorUnknown}) {
    ptxcpu_reset();
    ptxcpu_inject("cudaLaunchKernel", 1, error);
    kernels::saxpy(4, 1, x.get(), y.get(), nullptr);
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(cudaDeviceSynchronize(), error);
    EXPECT_EQ(cudaGetLastError(), error);
    ptxcpu_reset();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  EXPECT_EQ(y.download()[0], 0);
}

TEST_F(RuntimeTest, InjectedArchitecture) {
  DeviceArray<float> x(std::vector<float>(4, 1)), y(std::vector<float>(4, 0));
  ptxcpu_inject("cudaLaunchKernel", 1, cudaErrorNoKernelImageForDevice);
  kernels::saxpy(4, 1, x.get(), y.get(), nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
  kernels::saxpy(4, 1, x.get(), y.get(), nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the error is not sticky";
}

}  // namespace
