// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Kernel launches, kernel attributes and occupancy.
#include "launch.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "device.h"
#include "registration.h"
#include "registry.h"
#include "report.h"
#include "state.h"
#include "stream.h"

using ptxcpu::api;

namespace ptxcpu {
namespace {

struct CallConfiguration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<CallConfiguration> t_configurations;

// The kernel behind a host function, if this device can run it.
cudaError_t resolve(const void* function, KernelRef* kernel, const RegisteredKernel** registered) {
  const RegisteredKernel* found = find_registered(function);
  if (!found) return cudaErrorInvalidDeviceFunction;
  *registered = found;
  *kernel = find_kernel(found->digest, found->name);
  if (!kernel->kernel) {
    const std::string reason = refusal(found->digest, found->name);
    add_report("kernel " + short_kernel_name(found->name.c_str()) +
               (reason.empty() ? " was not translated for this program"
                               : " was refused by the translator: " + reason));
    return cudaErrorInvalidDeviceFunction;
  }
  const auto capability = uint32_t(device().major * 10 + device().minor);
  return kernel->module->target > capability ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}

cudaError_t check_shape(const KernelInfo& kernel, const RegisteredKernel& registered, const dim3& grid,
                        const dim3& block, size_t shared) {
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  const uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
  if (threads == 0 || threads > kThreadsPerBlock || block.z > 64 || blocks == 0)
    return cudaErrorInvalidConfiguration;
  if (grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535 || blocks > 0xffffffffu)
    return cudaErrorInvalidConfiguration;
  if (kernel.max_threads && threads > kernel.max_threads) return cudaErrorInvalidConfiguration;
  if (kernel.shared_bytes > kSharedPerBlock) return cudaErrorInvalidValue;
  const size_t total = kernel.shared_bytes + shared;
  if (total > std::max(kSharedPerBlock, registered.dynamic_shared_limit + kernel.shared_bytes))
    return cudaErrorInvalidValue;
  return total > device().shared_per_block_optin ? cudaErrorInvalidValue : cudaSuccess;
}

// Arguments are copied at the call, as a captured launch must replay these values.
std::vector<uint8_t> pack_arguments(const KernelInfo& kernel, void** arguments) {
  std::vector<uint8_t> buffer(std::max(kernel.param_bytes, 1u));
  for (uint32_t i = 0; i < kernel.param_count; ++i)
    std::memcpy(buffer.data() + kernel.params[i].offset, arguments[i], kernel.params[i].size);
  return buffer;
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                   cudaStream_t stream) {
  KernelRef kernel;
  const RegisteredKernel* registered = nullptr;
  if (const cudaError_t error = resolve(function, &kernel, &registered)) return error;
  if (const cudaError_t error = check_shape(*kernel.kernel, *registered, grid, block, shared)) return error;
  const LaunchShape shape{{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, uint32_t(shared)};
  const auto packed = std::make_shared<std::vector<uint8_t>>(pack_arguments(*kernel.kernel, arguments));
  return submit(stream, cudaGraphNodeTypeKernel, function,
                [=] { return static_cast<cudaError_t>(run_launch(kernel, shape, packed->data())); });
}

// Registers are unknown without ptxas: threads, blocks and shared memory bound the answer.
int active_blocks(const KernelInfo& kernel, int threads, size_t dynamic_shared) {
  const Device& d = device();
  const int warps = (threads + 31) / 32;
  int blocks = std::min(d.blocks_per_multiprocessor, d.threads_per_multiprocessor / (warps * 32));
  const size_t shared = kernel.shared_bytes + dynamic_shared + 1024;
  return std::min(blocks, int(d.shared_per_multiprocessor / shared));
}

}  // namespace
}  // namespace ptxcpu

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  ptxcpu::t_configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (ptxcpu::t_configurations.empty()) return cudaErrorMissingConfiguration;
  const auto& top = ptxcpu::t_configurations.back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  std::memcpy(stream, &top.stream, sizeof top.stream);
  ptxcpu::t_configurations.pop_back();
  return cudaSuccess;
}

// Kernel handles are host function addresses here.
cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return cudaGetKernel(kernel, function);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
  return api(__func__, [&] { return ptxcpu::launch(function, grid, block, arguments, shared, stream); });
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return cudaLaunchKernel(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                          config->stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                        size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(function, grid, block, arguments, shared, stream);
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return api(__func__, [&] {
    ptxcpu::RegisteredKernel* registered = ptxcpu::find_registered(function);
    if (!registered) return cudaErrorInvalidDeviceFunction;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || size_t(value) > ptxcpu::device().shared_per_block_optin) return cudaErrorInvalidValue;
    registered->dynamic_shared_limit = std::max(ptxcpu::kSharedPerBlock, size_t(value));
    return cudaSuccess;
  });
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) {
  return api(__func__, [] { return cudaSuccess; });
}

// Registers stay 0: only ptxas knows them.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return api(__func__, [&] {
    ptxcpu::KernelRef kernel;
    const ptxcpu::RegisteredKernel* registered = nullptr;
    if (const cudaError_t error = ptxcpu::resolve(function, &kernel, &registered)) return error;
    std::memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock =
        kernel.kernel->max_threads ? int(kernel.kernel->max_threads) : ptxcpu::kThreadsPerBlock;
    attributes->sharedSizeBytes = kernel.kernel->shared_bytes;
    attributes->maxDynamicSharedSizeBytes = int(registered->dynamic_shared_limit);
    attributes->ptxVersion = attributes->binaryVersion = int(kernel.module->target);
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                   int threads, size_t shared, unsigned) {
  return api(__func__, [&] {
    ptxcpu::KernelRef kernel;
    const ptxcpu::RegisteredKernel* registered = nullptr;
    if (const cudaError_t error = ptxcpu::resolve(function, &kernel, &registered)) return error;
    if (threads <= 0) return cudaErrorInvalidValue;
    *blocks = ptxcpu::active_blocks(*kernel.kernel, threads, shared);
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                          size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared,
                                                                cudaOccupancyDefault);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void*, int blocks, int) {
  return api(__func__, [&] {
    *bytes = std::min(ptxcpu::kSharedPerBlock,
                      ptxcpu::device().shared_per_multiprocessor / size_t(std::max(blocks, 1)) - 1024);
    return cudaSuccess;
  });
}
}
