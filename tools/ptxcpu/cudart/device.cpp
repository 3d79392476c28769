// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "allocations.h"
#include "registry.h"
#include "state.h"
#include "stream.h"

namespace ptxcpu {
namespace {

constexpr int kRuntimeVersion = CUDART_VERSION;
constexpr size_t kReservedShared = 1024;  // per block, kept by the system

struct Limits {
  int capability, threads, blocks;
  size_t shared_kib;
};
constexpr Limits kLimits[] = {
    {75, 1024, 16, 64},   {80, 2048, 32, 164},  {86, 1536, 16, 100},  {87, 1536, 16, 164},
    {88, 1536, 24, 100},  {89, 1536, 24, 100},  {90, 2048, 32, 228},  {100, 2048, 32, 228},
    {103, 2048, 32, 228}, {110, 1536, 24, 228}, {120, 1536, 24, 100}, {121, 1536, 24, 100},
};

// The limits of the newest known capability that is not newer than the device.
Limits limits_of(int capability) {
  Limits result = kLimits[0];
  for (const Limits& limits : kLimits)
    if (limits.capability <= capability) result = limits;
  return result;
}

std::string text_setting(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}
long number_setting(const char* name, long fallback) {
  const char* value = std::getenv(name);
  return value && *value ? std::atol(value) : fallback;
}

Device make_device() {
  Device d{};
  const int newest = std::max(80, int(highest_target()));
  d.major = newest / 10;
  d.minor = newest % 10;
  std::sscanf(text_setting("PTXCPU_DEVICE_CC", "").c_str(), "%d.%d", &d.major, &d.minor);
  d.multiprocessors = int(number_setting("PTXCPU_DEVICE_SMS", 4));
  d.memory_bytes = size_t(number_setting("PTXCPU_DEVICE_MEMORY", 8192)) << 20;
  d.name = text_setting("PTXCPU_DEVICE_NAME", "ptxcpu");
  const Limits limits = limits_of(d.major * 10 + d.minor);
  d.threads_per_multiprocessor = limits.threads;
  d.blocks_per_multiprocessor = limits.blocks;
  d.shared_per_multiprocessor = limits.shared_kib << 10;
  d.shared_per_block_optin = d.shared_per_multiprocessor - (limits.capability == 75 ? 0 : kReservedShared);
  return d;
}

void fill_properties(cudaDeviceProp* p) {
  const Device& d = device();
  std::memset(p, 0, sizeof *p);
  std::snprintf(p->name, sizeof p->name, "%s", d.name.c_str());
  p->major = d.major;
  p->minor = d.minor;
  p->warpSize = 32;
  p->multiProcessorCount = d.multiprocessors;
  p->totalGlobalMem = d.memory_bytes;
  p->totalConstMem = 65536;
  p->maxThreadsPerBlock = kThreadsPerBlock;
  p->maxThreadsPerMultiProcessor = d.threads_per_multiprocessor;
  p->maxBlocksPerMultiProcessor = d.blocks_per_multiprocessor;
  p->sharedMemPerBlock = kSharedPerBlock;
  p->sharedMemPerBlockOptin = d.shared_per_block_optin;
  p->sharedMemPerMultiprocessor = d.shared_per_multiprocessor;
  p->reservedSharedMemPerBlock = kReservedShared;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->l2CacheSize = 40 << 20;
  p->memoryBusWidth = 256;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->concurrentKernels = p->unifiedAddressing = p->managedMemory = p->canMapHostMemory = 1;
  p->memoryPoolsSupported = p->streamPrioritiesSupported = 1;
  p->asyncEngineCount = 2;
}

struct Attribute {
  cudaDeviceAttr which;
  int value;
};

// The same for every device we pretend to be.
constexpr Attribute kFixedAttributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, kThreadsPerBlock},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, int(kSharedPerBlock)},
    {cudaDevAttrReservedSharedMemoryPerBlock, int(kReservedShared)},
    {cudaDevAttrTotalConstantMemory, 65536},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
    {cudaDevAttrClockRate, 1500000},
    {cudaDevAttrMemoryClockRate, 1500000},
    {cudaDevAttrGlobalMemoryBusWidth, 256},
    {cudaDevAttrL2CacheSize, 40 << 20},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrAsyncEngineCount, 2},
    {cudaDevAttrCooperativeLaunch, 0},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrEccEnabled, 0},
    {cudaDevAttrComputeMode, 0},
    {cudaDevAttrClusterLaunch, 0},
};

bool find_attribute(cudaDeviceAttr which, int* value) {
  const Device& d = device();
  const Attribute of_device[] = {
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, int(d.shared_per_block_optin)},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, int(d.shared_per_multiprocessor)},
      {cudaDevAttrMultiProcessorCount, d.multiprocessors},
      {cudaDevAttrMaxThreadsPerMultiProcessor, d.threads_per_multiprocessor},
      {cudaDevAttrMaxBlocksPerMultiprocessor, d.blocks_per_multiprocessor},
      {cudaDevAttrComputeCapabilityMajor, d.major},
      {cudaDevAttrComputeCapabilityMinor, d.minor},
  };
  const auto search = [&](const auto& attributes) {
    for (const Attribute& attribute : attributes) {
      if (attribute.which != which) continue;
      *value = attribute.value;
      return true;
    }
    return false;
  };
  return search(of_device) || search(kFixedAttributes);
}

int g_device_count = 1;  // all alike, with one memory
int g_driver_version = kRuntimeVersion;
thread_local int t_current_device = 0;

cudaError_t check_ordinal(int ordinal) {
  return ordinal >= 0 && ordinal < g_device_count ? cudaSuccess : cudaErrorInvalidDevice;
}

}  // namespace

// Made at the first use, when all modules have registered.
const Device& device() {
  static const Device instance = make_device();
  return instance;
}

int current_device() { return t_current_device; }

}  // namespace ptxcpu

using ptxcpu::api;

extern "C" {

void ptxcpu_set_device_count(int count) { ptxcpu::g_device_count = count; }
void ptxcpu_set_driver_version(int version) {
  ptxcpu::g_driver_version = version > 0 ? version : ptxcpu::kRuntimeVersion;
}

cudaError_t cudaGetDeviceCount(int* count) {
  return api(__func__, [&] {
    *count = ptxcpu::g_device_count;
    return cudaSuccess;
  });
}
cudaError_t cudaSetDevice(int ordinal) {
  return api(__func__, [&] {
    const cudaError_t error = ptxcpu::check_ordinal(ordinal);
    if (error == cudaSuccess) ptxcpu::t_current_device = ordinal;
    return error;
  });
}
cudaError_t cudaInitDevice(int ordinal, unsigned, unsigned) {
  return api(__func__, [&] { return ptxcpu::check_ordinal(ordinal); });
}
cudaError_t cudaGetDevice(int* ordinal) {
  return api(__func__, [&] {
    *ordinal = ptxcpu::t_current_device;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  return api(__func__, [&] {
    const cudaError_t error = ptxcpu::check_ordinal(ordinal);
    if (error == cudaSuccess) ptxcpu::fill_properties(properties);
    return error;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int ordinal) {
  return api(__func__, [&] {
    if (!ptxcpu::find_attribute(which, value)) return cudaErrorInvalidValue;
    return ptxcpu::check_ordinal(ordinal);
  });
}
cudaError_t cudaDeviceReset(void) {
  const std::lock_guard lock(ptxcpu::runtime().mutex());
  ptxcpu::runtime().clear_sticky();
  ptxcpu::release_all_device_memory();
  return cudaSuccess;
}
cudaError_t cudaSetDeviceFlags(unsigned) {
  return api(__func__, [] { return cudaSuccess; });
}
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return api(__func__, [&] {
    *flags = cudaDeviceScheduleAuto;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) {
  return api(__func__, [] { return cudaSuccess; });
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) {
  return api(__func__, [&] {
    *value = 0;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api(__func__, [&] {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int ordinal) {
  return api(__func__, [&] {
    std::snprintf(text, size_t(length), "0000:00:00.0");
    return ptxcpu::check_ordinal(ordinal);
  });
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return api(__func__, [&] {
    *total_bytes = ptxcpu::device().memory_bytes;
    *free_bytes = *total_bytes - std::min(*total_bytes, ptxcpu::allocated_device_bytes());
    return cudaSuccess;
  });
}

// The versions are known without a driver.
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = ptxcpu::kRuntimeVersion;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  const std::lock_guard lock(ptxcpu::runtime().mutex());
  *version = ptxcpu::runtime().has_driver() ? ptxcpu::g_driver_version : 0;
  return cudaSuccess;
}
}
