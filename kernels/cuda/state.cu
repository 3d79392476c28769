// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The runtime services behind context.h, memory.h and capture.h: device, stream, memory, graphs, errors.
#include <algorithm>
#include <cstdlib>

#include "cublas.h"
#include "state.h"

namespace pwdice::cuda {
namespace {

// Asking for its attributes tells whether this build has code for the device.
__global__ void probe_kernel() {}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Why no device at all can be used; empty when there is one. cudaErrorInsufficientDriver stands for both a
// missing and an old driver, the version tells which.
std::string driver_problem(int& devices) {
  devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return "";
  if (error != cudaSuccess) cudaGetLastError();
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) return "no NVIDIA driver is installed";
  if (error == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver supports CUDA " + version_text(driver) + ", this build needs " +
           version_text(runtime) + " or newer";
  }
  if (error == cudaErrorNoDevice || error == cudaSuccess) return "the NVIDIA driver sees no device";
  return std::string("the NVIDIA driver does not answer: ") + cudaGetErrorString(error);
}

bool is_missing_code(cudaError_t error) {
  return error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
         error == cudaErrorUnsupportedPtxVersion || error == cudaErrorJitCompilerNotFound;
}

CudaAvailability no_answer(int device, cudaError_t error) {
  cudaGetLastError();
  return {false, format_message("device {} does not answer: {}", {device, cudaGetErrorString(error)})};
}

CudaAvailability device_availability(int device) {
  DeviceScope scope(device);
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) {
    return no_answer(device, error);
  }
  const std::string who = format_message("device {} ({}, compute capability {}.{})",
                                         {device, properties.name, properties.major, properties.minor});
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&probe_kernel));
  // The first call that needs the device's context: it also fails where that cannot be made.
  if (error != cudaSuccess && !is_missing_code(error)) return no_answer(device, error);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return {false, who + " is not among the architectures of this build (" PWDICE_CUDA_ARCHITECTURE_LIST ")"};
  }
  return {true, format_message("{}, {} MiB", {who, static_cast<uint64_t>(properties.totalGlobalMem >> 20)})};
}

bool is_lost(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorDevicesUnavailable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace

ErrorCode code_of(cudaError_t error) noexcept {
  if (is_lost(error)) return ErrorCode::DeviceLost;
  switch (error) {
    case cudaErrorMemoryAllocation:
      return ErrorCode::OutOfMemory;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorNotSupported:
    case cudaErrorStubLibrary:
      return ErrorCode::Unsupported;
    default:
      return ErrorCode::Internal;
  }
}

void raise(State& state, cudaError_t error, const std::string& what) {
  cudaGetLastError();  // reported here; must not be found again by the next check or by our host
  const char* reason = cudaGetErrorString(error);
  const ErrorCode code = code_of(error);
  if (code == ErrorCode::DeviceLost) {
    state.lost = reason;
    fail(code, "{} found the device lost ({}); restart the process, or use the CPU backend", what, reason);
  }
  if (code == ErrorCode::OutOfMemory) {
    size_t free_bytes = 0, total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) cudaGetLastError();
    fail(code, "{} failed: device {} has {} of {} bytes free", what, state.device, free_bytes, total_bytes);
  }
  fail(code, "{} failed on device {}: {}", what, state.device, reason);
}

DeviceScope::DeviceScope(int device) noexcept {
  int current = 0;
  const bool known = cudaGetDevice(&current) == cudaSuccess;
  if (known && current == device) return;
  if (known && cudaSetDevice(device) == cudaSuccess) {
    before_ = current;
  } else {
    cudaGetLastError();  // the call that needs the device will fail and report it
  }
}

DeviceScope::DeviceScope(const State& state, const char* op) : DeviceScope(state.device) {
  state.require_usable(op);
}

DeviceScope::~DeviceScope() {
  if (before_ >= 0) cudaSetDevice(before_);
}

CudaAvailability availability() {
  int devices = 0;
  const std::string problem = driver_problem(devices);
  if (!problem.empty()) return {false, problem};
  return device_availability(0);
}

State::State(const ContextOptions& options)
    : device(options.device), stream(options.stream), synchronise_launches(options.synchronise_launches) {
  int devices = 0;
  const std::string problem = driver_problem(devices);
  if (!problem.empty()) fail(ErrorCode::Unsupported, "context: {}; use the CPU backend", problem);
  PWDICE_CHECK(device >= 0 && device < devices, "context: device is {}, the machine has {}", device, devices);
  const CudaAvailability here = device_availability(device);
  if (!here.available) fail(ErrorCode::Unsupported, "context: {}; use the CPU backend", here.reason);
  PWDICE_CHECK(stream != cudaStreamLegacy && stream != cudaStreamPerThread,
               "context: the stream is a default stream, which cannot be captured; pass one of your own");

  const DeviceScope scope(device);
  int major = 0, minor = 0, pools = 0;
  PWDICE_CUDA_CHECK(*this, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                    "context: asking device {} for its architecture", device);
  PWDICE_CUDA_CHECK(*this, cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
                    "context: asking device {} for its architecture", device);
  PWDICE_CUDA_CHECK(*this, cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device),
                    "context: asking device {} for memory pools", device);
  compute_capability = 10 * major + minor;
  has_pools = pools != 0;
  if (options.score_precision != ScorePrecision::Fp32 && compute_capability < 80) {
    fail(ErrorCode::Unsupported,
         "context: TF32 and BF16 scores need compute capability 8.0, device {} has {}.{}", device, major,
         minor);
  }
  if (stream == nullptr) {
    PWDICE_CUDA_CHECK(*this, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                      "context: making a stream");
    owns_stream = true;
  }
}

State::~State() {
  const DeviceScope scope(device);
  cublas.reset();
  if (owns_stream && cudaStreamDestroy(stream) != cudaSuccess) cudaGetLastError();  // nobody to tell
}

// An error that a caller of the runtime has not read would be taken for that of our next launch. "Not ready" is the answer
// of an event or stream that was asked, which few callers clear: it is cleared here.
void require_no_error(State& state, const char* op) {
  const cudaError_t error = cudaPeekAtLastError();
  if (error == cudaSuccess) return;
  if (error == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return;
  }
  if (is_lost(error)) raise(state, error, op);
  fail(ErrorCode::InvalidArgument,
       "{}: an earlier CUDA call of this thread failed and its error was not read ({}); "
       "call cudaGetLastError() after it",
       op, cudaGetErrorString(error));
}

void State::require_usable(const char* op) const {
  if (!lost.empty()) {
    fail(ErrorCode::DeviceLost,
         "{}: the device was lost earlier ({}); restart the process, or use the CPU backend", op, lost);
  }
}

State* create_state(const ContextOptions& options) {
  auto state = std::make_unique<State>(options);
  if (options.gemm == GemmLibrary::CuBlas) state->cublas = std::make_unique<CuBlas>(*state);
  return state.release();
}
void StateDeleter::operator()(State* state) const noexcept { delete state; }

void synchronise(State& state) {
  const DeviceScope scope(state, "synchronise");
  PWDICE_CUDA_CHECK(state, cudaStreamSynchronize(state.stream), "synchronise");
}

void* allocate(State& state, size_t bytes) {
  const DeviceScope scope(state, "allocate");
  void* memory = nullptr;
  PWDICE_CUDA_CHECK(
      state, state.has_pools ? cudaMallocAsync(&memory, bytes, state.stream) : cudaMalloc(&memory, bytes),
      "allocate: {} bytes", static_cast<uint64_t>(bytes));
  return memory;
}

void release(State& state, void* memory) noexcept {
  const DeviceScope scope(state.device);
  const cudaError_t error = state.has_pools ? cudaFreeAsync(memory, state.stream) : cudaFree(memory);
  if (error != cudaSuccess) cudaGetLastError();  // a lost device has no memory to give back
}

void copy_bytes(State& state, void* to, const void* from, size_t bytes) {
  const DeviceScope scope(state, "copy_bytes");
  PWDICE_CUDA_CHECK(state, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, state.stream),
                    "copy_bytes: {} bytes", static_cast<uint64_t>(bytes));
}

void upload(State& state, void* to, const void* host, size_t bytes) {
  const DeviceScope scope(state, "upload");
  PWDICE_CUDA_CHECK(state, cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, state.stream),
                    "upload: {} bytes", static_cast<uint64_t>(bytes));
  PWDICE_CUDA_CHECK(state, cudaStreamSynchronize(state.stream), "upload: {} bytes",
                    static_cast<uint64_t>(bytes));
}

void download(State& state, void* host, const void* from, size_t bytes) {
  const DeviceScope scope(state, "download");
  PWDICE_CUDA_CHECK(state, cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, state.stream),
                    "download: {} bytes", static_cast<uint64_t>(bytes));
  PWDICE_CUDA_CHECK(state, cudaStreamSynchronize(state.stream), "download: {} bytes",
                    static_cast<uint64_t>(bytes));
}

void fill_zero(State& state, void* memory, size_t bytes) {
  const DeviceScope scope(state, "fill_zero");
  PWDICE_CUDA_CHECK(state, cudaMemsetAsync(memory, 0, bytes, state.stream), "fill_zero: {} bytes",
                    static_cast<uint64_t>(bytes));
}

void begin_capture(State& state) {
  const DeviceScope scope(state, "capture");
  // Thread-local: other threads of the process may allocate and synchronise as they like meanwhile.
  PWDICE_CUDA_CHECK(state, cudaStreamBeginCapture(state.stream, cudaStreamCaptureModeThreadLocal),
                    "capture: beginning a step");
  state.capturing = true;
}

Graph* end_capture(State& state) {
  const DeviceScope scope(state, "capture");
  cudaGraph_t graph = nullptr;
  state.capturing = false;
  PWDICE_CUDA_CHECK(state, cudaStreamEndCapture(state.stream, &graph), "capture: ending a step");
  auto result = std::make_unique<Graph>();
  result->device = state.device;
  const cudaError_t error = cudaGraphInstantiate(&result->exec, graph, 0);
  cudaGraphDestroy(graph);
  if (error != cudaSuccess) raise(state, error, "capture: instantiating the step's graph");
  return result.release();
}

void abandon_capture(State& state) noexcept {
  const DeviceScope scope(state.device);
  state.capturing = false;
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(state.stream, &graph) != cudaSuccess) {
    cudaGetLastError();  // the step's own error is on its way already
  } else if (graph != nullptr) {
    cudaGraphDestroy(graph);
  }
}

void launch(State& state, Graph& graph) {
  const DeviceScope scope(state, "replay");
  PWDICE_CUDA_CHECK(state, cudaGraphLaunch(graph.exec, state.stream), "replay: launching the step's graph");
}

void GraphDeleter::operator()(Graph* graph) const noexcept {
  const DeviceScope scope(graph->device);
  if (graph->exec != nullptr && cudaGraphExecDestroy(graph->exec) != cudaSuccess) cudaGetLastError();
  delete graph;
}

}  // namespace pwdice::cuda
