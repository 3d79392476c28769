// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Allocation: cudaMalloc and relatives, stream-ordered allocation, pools, pointer attributes.
#include <cstring>
#include <map>

#include "allocations.h"
#include "device.h"
#include "state.h"
#include "stream.h"

using ptxcpu::api;
using ptxcpu::MemoryKind;

struct CUmemPoolHandle_st {
  std::map<cudaMemPoolAttr, uint64_t> attributes;
};

namespace ptxcpu {
namespace {

cudaError_t allocate_checked(void** pointer, size_t bytes, MemoryKind kind) {
  if (!pointer) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const bool on_device = kind != MemoryKind::kHost;
  if (on_device && bytes > device().memory_bytes - std::min(device().memory_bytes, allocated_device_bytes()))
    return cudaErrorMemoryAllocation;
  *pointer = allocate(bytes, kind);
  return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t allocate_outside_capture(void** pointer, size_t bytes, MemoryKind kind) {
  if (const cudaError_t error = refuse_in_capture()) return error;
  return allocate_checked(pointer, bytes, kind);
}

cudaError_t free_outside_capture(void* pointer, MemoryKind kind) {
  if (const cudaError_t error = refuse_in_capture()) return error;
  if (!pointer) return cudaSuccess;
  return release(pointer, kind) ? cudaSuccess : cudaErrorInvalidValue;
}

// In a capture the address is fixed now and belongs to the graph; replays use the same memory.
cudaError_t allocate_in_stream(void** pointer, size_t bytes, cudaStream_t handle) {
  CUstream_st* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t error = allocate_checked(pointer, bytes, MemoryKind::kDevice)) return error;
  if (!stream->capture) return cudaSuccess;
  stream->capture->memory.emplace_back(*pointer, [](void* p) { release(p, MemoryKind::kDevice); });
  return submit(handle, cudaGraphNodeTypeMemAlloc, nullptr, [] { return cudaSuccess; });
}

cudaError_t free_in_stream(void* pointer, cudaStream_t handle) {
  CUstream_st* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!pointer) return cudaSuccess;
  if (stream->capture) return submit(handle, cudaGraphNodeTypeMemFree, nullptr, [] { return cudaSuccess; });
  return release(pointer, MemoryKind::kDevice) ? cudaSuccess : cudaErrorInvalidValue;
}

CUmemPoolHandle_st* default_pool() {
  static auto* pool = new CUmemPoolHandle_st;
  return pool;
}

void describe_pointer(cudaPointerAttributes* attributes, const void* pointer) {
  std::memset(attributes, 0, sizeof *attributes);
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const Allocation* found = find_allocation(address);
  const bool inside = found && found->live && address - found->base < found->size;
  auto* shared = const_cast<void*>(pointer);
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = inside ? 0 : -2;
  attributes->hostPointer = shared;
  if (!inside) return;
  attributes->devicePointer = shared;
  if (found->kind == MemoryKind::kHost) {
    attributes->type = cudaMemoryTypeHost;
  } else if (found->kind == MemoryKind::kManaged) {
    attributes->type = cudaMemoryTypeManaged;
  } else {
    attributes->type = cudaMemoryTypeDevice;
    attributes->hostPointer = nullptr;
  }
}

}  // namespace
}  // namespace ptxcpu

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return api(__func__, [&] { return ptxcpu::allocate_outside_capture(pointer, bytes, MemoryKind::kDevice); });
}
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  return api(__func__,
             [&] { return ptxcpu::allocate_outside_capture(pointer, bytes, MemoryKind::kManaged); });
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return api(__func__, [&] { return ptxcpu::allocate_outside_capture(pointer, bytes, MemoryKind::kHost); });
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return api(__func__, [&] { return ptxcpu::allocate_outside_capture(pointer, bytes, MemoryKind::kHost); });
}
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return api(__func__, [&] {
    *pitch = (width + 511) / 512 * 512;
    return ptxcpu::allocate_outside_capture(pointer, *pitch * height, MemoryKind::kDevice);
  });
}
cudaError_t cudaFree(void* pointer) {
  return api(__func__, [&] { return ptxcpu::free_outside_capture(pointer, MemoryKind::kDevice); });
}
cudaError_t cudaFreeHost(void* pointer) {
  return api(__func__, [&] { return ptxcpu::free_outside_capture(pointer, MemoryKind::kHost); });
}
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  return api(__func__, [&] {
    ptxcpu::register_allocation(pointer, bytes, MemoryKind::kHost);
    return cudaSuccess;
  });
}
cudaError_t cudaHostUnregister(void* pointer) {
  return api(__func__, [&] {
    return ptxcpu::unregister_allocation(pointer) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
  });
}
cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned) {
  return api(__func__, [&] {
    *device_pointer = host_pointer;
    return cudaSuccess;
  });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return api(__func__, [&] { return ptxcpu::allocate_in_stream(pointer, bytes, stream); });
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t, cudaStream_t stream) {
  return api(__func__, [&] { return ptxcpu::allocate_in_stream(pointer, bytes, stream); });
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return api(__func__, [&] { return ptxcpu::free_in_stream(pointer, stream); });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  return api(__func__, [&] {
    *pool = ptxcpu::default_pool();
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int ordinal) {
  return cudaDeviceGetDefaultMemPool(pool, ordinal);
}
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) {
  return api(__func__, [] { return cudaSuccess; });
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  return api(__func__, [&] {
    *pool = new CUmemPoolHandle_st;
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return api(__func__, [&] {
    if (!pool || pool == ptxcpu::default_pool()) return cudaErrorInvalidValue;
    delete pool;
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) {
  return api(__func__, [] { return cudaSuccess; });
}
// The reuse flags are 32-bit, the sizes and the threshold 64-bit.
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return api(__func__, [&] {
    const size_t size = attribute < cudaMemPoolAttrReleaseThreshold ? sizeof(int) : sizeof(uint64_t);
    std::memcpy(&pool->attributes[attribute], value, size);
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return api(__func__, [&] {
    uint64_t result = pool->attributes[attribute];
    if (attribute == cudaMemPoolAttrReservedMemCurrent || attribute == cudaMemPoolAttrUsedMemCurrent)
      result = ptxcpu::allocated_device_bytes();
    const size_t size = attribute < cudaMemPoolAttrReleaseThreshold ? sizeof(int) : sizeof(uint64_t);
    std::memcpy(value, &result, size);
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return api(__func__, [&] {
    ptxcpu::describe_pointer(attributes, pointer);
    return cudaSuccess;
  });
}
}
