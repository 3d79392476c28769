// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Streams, events, stream capture and graphs of the stand-in runtime.
#include <gtest/gtest.h>

#include <thread>

#include "device_array.h"
#include "kernels.h"
#include "ptxcpu.h"

namespace {

constexpr int kN = 300;

class GraphTest : public testing::Test {
 protected:
  void SetUp() override {
    ptxcpu_reset();
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    ptxcpu_reset();
  }

  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, mode), cudaSuccess);
  }
  cudaStreamCaptureStatus status() {
    cudaStreamCaptureStatus result = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudaStreamIsCapturing(stream_, &result), cudaSuccess);
    return result;
  }
  cudaGraphExec_t finish() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return exec;
  }

  cudaStream_t stream_ = nullptr, other_ = nullptr;
};

TEST_F(GraphTest, CaptureRecordsAndReplayExecutes) {
  DeviceArray<float> x(std::vector<float>(kN, 2)), y(std::vector<float>(kN, 1));
  begin();
  EXPECT_EQ(status(), cudaStreamCaptureStatusActive);
  float a = 3;
  kernels::saxpy(kN, a, x.get(), y.get(), stream_);
  a = 100;  // replays use the value at capture
  EXPECT_EQ(cudaMemsetAsync(x.get(), 0, 4, stream_), cudaSuccess);
  cudaGraphExec_t exec = finish();
  EXPECT_EQ(status(), cudaStreamCaptureStatusNone);
  EXPECT_EQ(y.download()[0], 1) << "nothing runs during capture";
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(y.download()[0], 7) << "the memset follows the first saxpy";
  EXPECT_EQ(y.download()[1], 19);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphTest, SynchronisingCallsInvalidateAGlobalCapture) {
  DeviceArray<float> x(std::vector<float>(kN, 2));
  void* memory = nullptr;
  float host = 0;
  const auto expect_refused = [&](auto call) {
    begin();
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(status(), cudaStreamCaptureStatusInvalidated);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    cudaGetLastError();
  };
  expect_refused([&] { return cudaMalloc(&memory, 16); });
  expect_refused([&] { return cudaStreamSynchronize(stream_); });
  expect_refused([&] { return cudaStreamQuery(stream_); });
  expect_refused([&] { return cudaDeviceSynchronize(); });
  expect_refused([&] { return cudaMemcpy(&host, x.get(), 4, cudaMemcpyDeviceToHost); });
  expect_refused([&] { return cudaMemset(x.get(), 0, 4); });
}

TEST_F(GraphTest, CaptureModes) {
  void* memory = nullptr;
  const auto malloc_elsewhere = [&] {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = cudaMalloc(&memory, 16); }).join();
    return error;
  };
  begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(malloc_elsewhere(), cudaErrorStreamCaptureUnsupported) << "global forbids other threads too";
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);

  begin(cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(malloc_elsewhere(), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(finish()), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);

  begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(finish()), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(GraphTest, ForkAndJoin) {
  DeviceArray<float> x(std::vector<float>(kN, 1)), y(std::vector<float>(kN, 0));
  cudaEvent_t fork = nullptr, join = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&join, cudaEventDisableTiming), cudaSuccess);
  for (const bool joined : {true, false}) {
    begin();
    EXPECT_EQ(cudaEventRecord(fork, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(other_, fork, 0), cudaSuccess);
    kernels::saxpy(kN, 2, x.get(), y.get(), other_);
    EXPECT_EQ(cudaEventRecord(join, other_), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(join), cudaErrorCapturedEvent);
    if (joined) {
      EXPECT_EQ(cudaStreamWaitEvent(stream_, join, 0), cudaSuccess);
      cudaGraphExec_t exec = finish();
      EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
      EXPECT_EQ(y.download()[5], 2);
      EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    } else {
      cudaGraph_t graph = nullptr;
      EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureUnjoined);
    }
  }
  EXPECT_EQ(cudaEventDestroy(fork), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(join), cudaSuccess);
}

TEST_F(GraphTest, UpdateTakesNewParametersOfTheSameTopology) {
  DeviceArray<float> x(std::vector<float>(kN, 1)), y(std::vector<float>(kN, 0));
  const auto capture = [&](float a, bool extra) {
    begin();
    kernels::saxpy(kN, a, x.get(), y.get(), stream_);
    if (extra) kernels::fill_async(y.get(), 0, kN, stream_);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    return graph;
  };
  cudaGraph_t first = capture(1, false), second = capture(10, false), different = capture(1, true);
  size_t count = 0;
  EXPECT_EQ(cudaGraphGetNodes(different, nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 2u);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, first, 0), cudaSuccess);
  cudaGraphExecUpdateResultInfo info;
  EXPECT_EQ(cudaGraphExecUpdate(exec, second, &info), cudaSuccess);
  EXPECT_EQ(cudaGraphExecUpdate(exec, different, &info), cudaErrorGraphExecUpdateFailure);
  cudaGetLastError();
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(y.download()[0], 10);
  for (cudaGraph_t graph : {first, second, different}) EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphTest, MemoryOfAGraphLivesWithIt) {
  DeviceArray<float> y(std::vector<float>(kN, 0));
  begin();
  float* scratch = nullptr;
  ASSERT_EQ(cudaMallocAsync(reinterpret_cast<void**>(&scratch), kN * sizeof(float), stream_), cudaSuccess);
  kernels::fill_async(scratch, 4, kN, stream_);
  kernels::saxpy(kN, 1, scratch, y.get(), stream_);
  EXPECT_EQ(cudaFreeAsync(scratch, stream_), cudaSuccess);
  cudaGraphExec_t exec = finish();
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess) << ptxcpu_last_report();
  EXPECT_EQ(y.download()[0], 8);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

TEST_F(GraphTest, HostFunctionsAndEvents) {
  int calls = 0;
  const auto count = [](void* data) { ++*static_cast<int*>(data); };
  EXPECT_EQ(cudaLaunchHostFunc(stream_, count, &calls), cudaSuccess);
  EXPECT_EQ(calls, 1);
  begin();
  EXPECT_EQ(cudaLaunchHostFunc(stream_, count, &calls), cudaSuccess);
  cudaGraphExec_t exec = finish();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);

  cudaEvent_t first = nullptr, second = nullptr;
  ASSERT_EQ(cudaEventCreate(&first), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&second), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, first, second), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(first, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(second, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(second), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, first, second), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(cudaEventDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(second), cudaSuccess);
}

}  // namespace
