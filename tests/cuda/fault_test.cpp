// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// What happens when the device, the driver or the memory is not there, provoked through the stand-in runtime.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <ptxcpu.h>

#include "../../kernels/capture.h"
#include "../../kernels/elementwise.h"
#include "../../kernels/matmul.h"
#include "../../kernels/memory.h"
#include "../op_case.h"

namespace pwdice::test {
namespace {

constexpr int kEveryCall = 0;

class CudaFault : public testing::Test {
 protected:
  void SetUp() override { ptxcpu_reset(); }
  void TearDown() override { ptxcpu_reset(); }

  static ContextOptions options() { return {.backend = Backend::Cuda, .scratch_bytes = 4096}; }

  // Six floats 1 in the Context's memory.
  static Vec<float> ones(Context& ctx) {
    const Vec<float> values{static_cast<float*>(allocate(ctx, 6 * sizeof(float))), 6};
    fill(ctx, values, 1.f);
    return values;
  }
  static void expect_refusal(const std::string& sentence) {
    const CudaAvailability cuda = cuda_availability();
    EXPECT_FALSE(cuda.available);
    EXPECT_EQ(cuda.reason, sentence);
    expect_error(ErrorCode::Unsupported, "context: " + sentence + "; use the CPU backend",
                 [] { Context ctx(options()); });
    EXPECT_NO_THROW(Context({.threads = 1}));
  }
};

TEST_F(CudaFault, AvailableDeviceIsNamed) {
  const CudaAvailability cuda = cuda_availability();
  EXPECT_TRUE(cuda.available);
  EXPECT_EQ(cuda.reason.rfind("device 0 (ptxcpu, compute capability ", 0), 0u) << cuda.reason;
}

TEST_F(CudaFault, NoDriver) {
  ptxcpu_inject("*", kEveryCall, cudaErrorInsufficientDriver);
  expect_refusal("no NVIDIA driver is installed");
}

TEST_F(CudaFault, DriverTooOld) {
  ptxcpu_inject("cudaGetDeviceCount", kEveryCall, cudaErrorInsufficientDriver);
  ptxcpu_set_driver_version(11040);
  const std::string needed =
      std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  expect_refusal("the NVIDIA driver supports CUDA 11.4, this build needs " + needed + " or newer");
  ptxcpu_set_driver_version(0);
}

TEST_F(CudaFault, NoDevice) {
  ptxcpu_inject("cudaGetDeviceCount", kEveryCall, cudaErrorNoDevice);
  expect_refusal("the NVIDIA driver sees no device");
}

TEST_F(CudaFault, UnsupportedArchitecture) {
  const std::string who = cuda_availability().reason;
  for (const cudaError_t error : {cudaErrorNoKernelImageForDevice, cudaErrorUnsupportedPtxVersion}) {
    ptxcpu_reset();
    ptxcpu_inject("cudaFuncGetAttributes", kEveryCall, error);
    expect_refusal(who.substr(0, who.find(')') + 1) + " is not among the architectures of this build (" +
                   PWDICE_CUDA_ARCHITECTURE_LIST + ")");
  }
}

// The first call that needs the device's context is also the first to find no memory for it.
TEST_F(CudaFault, DeviceThatDoesNotAnswer) {
  for (const char* call : {"cudaFuncGetAttributes", "cudaGetDeviceProperties"}) {
    for (const cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorSystemNotReady}) {
      ptxcpu_reset();
      ptxcpu_inject(call, kEveryCall, error);
      expect_refusal(std::string("device 0 does not answer: ") + cudaGetErrorString(error));
    }
  }
}

TEST_F(CudaFault, NoNewContextAfterALostDevice) {
  ptxcpu_inject("cudaStreamSynchronize", 1, cudaErrorIllegalAddress);
  expect_error(ErrorCode::DeviceLost, "restart the process, or use the CPU backend",
               [] { Context(options()).synchronise(); });
  expect_error(ErrorCode::Unsupported, "does not answer", [] { Context ctx(options()); });
  EXPECT_NO_THROW(Context({.threads = 1}));
}

TEST_F(CudaFault, DeviceNumberOutOfRange) {
  ContextOptions wrong = options();
  wrong.device = 7;
  expect_error(ErrorCode::InvalidArgument, "context: device is 7, the machine has 1",
               [&] { Context ctx(wrong); });
}

TEST_F(CudaFault, DefaultStreamIsRefused) {
  ContextOptions wrong = options();
  wrong.stream = cudaStreamLegacy;
  expect_error(ErrorCode::InvalidArgument, "a default stream", [&] { Context ctx(wrong); });
}

TEST_F(CudaFault, OutOfMemoryLeavesTheContextUsable) {
  Context ctx(options());
  const Vec<float> values = ones(ctx);
  ptxcpu_inject("cudaMallocAsync", 1, cudaErrorMemoryAllocation);
  expect_error(ErrorCode::OutOfMemory, "allocate: 1024 bytes failed: device 0 has",
               [&] { allocate(ctx, 1000); });
  affine(ctx, {values, 2.f, 1.f, values});
  std::vector<float> host(6);
  download(ctx, host.data(), values.data, 6 * sizeof(float));
  EXPECT_EQ(host, std::vector<float>(6, 3.f));
  release(ctx, values.data);
}

TEST_F(CudaFault, OutOfMemoryWhileMakingAContext) {
  ptxcpu_inject("cudaMallocAsync", 1, cudaErrorMemoryAllocation);
  expect_error(ErrorCode::OutOfMemory, "allocate: 4096 bytes", [] { Context ctx(options()); });
}

TEST_F(CudaFault, FailedLaunchNamesTheOp) {
  Context ctx(options());
  const Vec<float> values = ones(ctx);
  ptxcpu_inject("cudaLaunchKernel", 1, cudaErrorInvalidConfiguration);
  expect_error(ErrorCode::Internal, "affine: the launch failed on device 0", [&] {
    affine(ctx, {values, 2.f, 1.f, values});
  });
  EXPECT_NO_THROW(affine(ctx, {values, 2.f, 1.f, values}));
  release(ctx, values.data);
}

// What the host program forgot to read is neither blamed on us nor taken from it.
TEST_F(CudaFault, AnEarlierErrorOfTheHostIsNotOurs) {
  {
    Context ctx(options());
    const Vec<float> values = ones(ctx);
    ASSERT_EQ(cudaSetDevice(7), cudaErrorInvalidDevice);
    expect_error(ErrorCode::InvalidArgument, "affine: an earlier CUDA call of this thread failed", [&] {
      affine(ctx, {values, 2.f, 1.f, values});
    });
    release(ctx, values.data);
  }
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudaFault, LostDeviceIsRememberedAndDestructorsDoNotThrow) {
  {
    Context ctx(options());
    const Vec<float> values = ones(ctx);
    ptxcpu_inject("cudaStreamSynchronize", 1, cudaErrorIllegalAddress);
    expect_error(ErrorCode::DeviceLost, "synchronise found the device lost", [&] { ctx.synchronise(); });
    expect_error(ErrorCode::DeviceLost, "affine: the device was lost earlier", [&] {
      affine(ctx, {values, 2.f, 1.f, values});
    });
    expect_error(ErrorCode::DeviceLost, "allocate: the device was lost earlier", [&] { allocate(ctx, 4); });
    EXPECT_NO_THROW(release(ctx, values.data));
  }
  EXPECT_NO_THROW(Context({.threads = 1}));
}

TEST_F(CudaFault, SynchronisedLaunchesPinAFaultToItsKernel) {
  ContextOptions pinned = options();
  pinned.synchronise_launches = true;
  Context ctx(pinned);
  const Vec<float> values = ones(ctx);
  ptxcpu_inject("cudaStreamSynchronize", 1, cudaErrorLaunchFailure);
  expect_error(ErrorCode::DeviceLost, "affine: the launch found the device lost", [&] {
    affine(ctx, {values, 2.f, 1.f, values});
  });
}

TEST_F(CudaFault, AStepThatThrowsWhileCapturedLeavesNoCaptureOpen) {
  Context ctx(options());
  const Vec<float> values = ones(ctx);
  CapturedStep step;
  step.run(ctx, [&] { affine(ctx, {values, 2.f, 0.f, values}); });
  EXPECT_THROW(step.run(ctx, [&] { fail(ErrorCode::Internal, "planted"); }), Error);
  EXPECT_NO_THROW(ctx.synchronise());
  step.run(ctx, [&] { affine(ctx, {values, 2.f, 0.f, values}); });  // captured now, and replayed below
  step.run(ctx, [&] { ADD_FAILURE() << "the graph should have been replayed"; });
  std::vector<float> host(6);
  download(ctx, host.data(), values.data, 6 * sizeof(float));
  EXPECT_EQ(host, std::vector<float>(6, 8.f));
  release(ctx, values.data);
}

TEST_F(CudaFault, FailedReplayIsReported) {
  Context ctx(options());
  const Vec<float> values = ones(ctx);
  CapturedStep step;
  const auto body = [&] { affine(ctx, {values, 2.f, 0.f, values}); };
  for (int i = 0; i < 2; ++i) step.run(ctx, body);
  ptxcpu_inject("cudaGraphLaunch", 1, cudaErrorLaunchFailure);
  expect_error(ErrorCode::DeviceLost, "replay: launching the step's graph found the device lost",
               [&] { step.run(ctx, body); });
}

// The caller's current device is another one: the op runs where its Context is and gives the caller's back.
TEST_F(CudaFault, CurrentDeviceIsRestored) {
  ptxcpu_set_device_count(2);
  int current = -1;
  {
    Context ctx(options());
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    const Vec<float> values = ones(ctx);
    CapturedStep step;
    for (int i = 0; i < 3; ++i) step.run(ctx, [&] { affine(ctx, {values, 2.f, 0.f, values}); });
    std::vector<float> host(6);
    download(ctx, host.data(), values.data, 6 * sizeof(float));
    EXPECT_EQ(host, std::vector<float>(6, 8.f));
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 1);
    expect_error(ErrorCode::InvalidArgument, "affine", [&] {
      affine(ctx, {values, 2.f, 0.f, {values.data, 5}});
    });
    release(ctx, values.data);
  }
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 1);
  EXPECT_EQ(ptxcpu_call_count("default stream"), 0u);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ptxcpu_set_device_count(1);
}

// A handle of cuBLAS belongs to the device that was current when it was made, and refuses another's stream.
TEST_F(CudaFault, CuBlasOnADeviceThatIsNotCurrent) {
  ptxcpu_set_device_count(2);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  for (const int device : {0, 1}) {
    ContextOptions cublas = options();
    cublas.device = device, cublas.gemm = GemmLibrary::CuBlas;
    Context ctx(cublas);
    const std::vector<float> six(6, 1.f);
    OpRun op(ctx, 0);
    matmul(ctx, {op.in(six, 2, 3), op.in(six, 3, 2), false, false, op.out("c", 2, 2)});
    EXPECT_EQ(op.finish()["c"], std::vector<float>(4, 3.f));
  }
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 1);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ptxcpu_set_device_count(1);
}

TEST_F(CudaFault, CuBlasWithoutAHandle) {
  ContextOptions cublas = options();
  cublas.gemm = GemmLibrary::CuBlas;
  ptxcpu_inject("cudaStreamGetDevice", 1, cudaErrorInvalidResourceHandle);  // asked by the stand-in
  expect_error(ErrorCode::Unsupported, "cublas: no handle could be made on device 0",
               [&] { Context ctx(cublas); });
}

// Captured by its owner, the caller's stream gets what the op launches.
TEST_F(CudaFault, CallersStreamIsUsedAndKept) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    ContextOptions own = options();
    own.stream = stream;
    Context ctx(own);
    const Vec<float> values = ones(ctx);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    for (int i = 0; i < 3; ++i) affine(ctx, {values, 2.f, 0.f, values});
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    size_t nodes = 0;
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
    EXPECT_EQ(nodes, 3u);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    release(ctx, values.data);
  }
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace pwdice::test
