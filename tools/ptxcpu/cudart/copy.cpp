// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Copies and fills, synchronous and in streams, and those of module variables.
#include <cstring>

#include "allocations.h"
#include "registration.h"
#include "state.h"
#include "stream.h"

using ptxcpu::api;

namespace ptxcpu {
namespace {

struct Region {
  void* target;
  size_t target_pitch;
  const void* source;
  size_t source_pitch;
  size_t width, height;
};

size_t extent(size_t pitch, size_t width, size_t height) { return height ? pitch * (height - 1) + width : 0; }

// A side that is on the device must be allocated there.
bool is_valid(const Region& r, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (r.width == 0 || r.height == 0) return true;
  if (!r.target || !r.source || r.target_pitch < r.width || r.source_pitch < r.width) return false;
  if (to_device && !is_allocated(r.target, extent(r.target_pitch, r.width, r.height))) return false;
  return !from_device || is_allocated(r.source, extent(r.source_pitch, r.width, r.height));
}

void copy(const Region& r) {
  for (size_t row = 0; row < r.height; ++row) {
    auto* target = static_cast<char*>(r.target) + row * r.target_pitch;
    const auto* source = static_cast<const char*>(r.source) + row * r.source_pitch;
    std::memmove(target, source, r.width);
    mark_copied(target, source, r.width);
  }
}

cudaError_t copy_in_stream(const Region& region, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!is_valid(region, kind)) return cudaErrorInvalidValue;
  return submit(stream, cudaGraphNodeTypeMemcpy, nullptr, [region] {
    copy(region);
    return cudaSuccess;
  });
}

cudaError_t copy_now(const Region& region, cudaMemcpyKind kind) {
  if (const cudaError_t error = refuse_in_capture()) return error;
  return copy_in_stream(region, kind, cudaStreamLegacy);
}

cudaError_t fill_in_stream(void* target, size_t pitch, int value, size_t width, size_t height,
                           cudaStream_t stream) {
  if (width && height && !is_allocated(target, extent(pitch, width, height))) return cudaErrorInvalidValue;
  return submit(stream, cudaGraphNodeTypeMemset, nullptr, [=] {
    for (size_t row = 0; row < height; ++row) {
      auto* begin = static_cast<char*>(target) + row * pitch;
      std::memset(begin, value, width);
      mark_written(begin, width);
    }
    return cudaSuccess;
  });
}

Region flat(void* target, const void* source, size_t bytes) {
  return {target, bytes, source, bytes, bytes, bytes ? 1u : 0u};
}

cudaError_t symbol_region(const void* symbol, size_t offset, size_t bytes, void** address) {
  const VariableInfo* variable = find_symbol(symbol);
  if (!variable) return cudaErrorInvalidSymbol;
  if (offset + bytes > variable->size) return cudaErrorInvalidValue;
  *address = variable->data + offset;
  return cudaSuccess;
}

}  // namespace
}  // namespace ptxcpu

extern "C" {

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  return api(__func__, [&] { return ptxcpu::copy_now(ptxcpu::flat(target, source, bytes), kind); });
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return api(__func__,
             [&] { return ptxcpu::copy_in_stream(ptxcpu::flat(target, source, bytes), kind, stream); });
}
cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return api(__func__, [&] {
    return ptxcpu::copy_now({target, target_pitch, source, source_pitch, width, height}, kind);
  });
}
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return api(__func__, [&] {
    return ptxcpu::copy_in_stream({target, target_pitch, source, source_pitch, width, height}, kind, stream);
  });
}
cudaError_t cudaMemcpyPeerAsync(void* target, int, const void* source, int, size_t bytes,
                                cudaStream_t stream) {
  return api(__func__, [&] {
    return ptxcpu::copy_in_stream(ptxcpu::flat(target, source, bytes), cudaMemcpyDeviceToDevice, stream);
  });
}

cudaError_t cudaMemset(void* target, int value, size_t bytes) {
  return api(__func__, [&] {
    if (const cudaError_t error = ptxcpu::refuse_in_capture()) return error;
    return ptxcpu::fill_in_stream(target, bytes, value, bytes, 1, cudaStreamLegacy);
  });
}
cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream) {
  return api(__func__, [&] { return ptxcpu::fill_in_stream(target, bytes, value, bytes, 1, stream); });
}
cudaError_t cudaMemset2D(void* target, size_t pitch, int value, size_t width, size_t height) {
  return api(__func__, [&] {
    if (const cudaError_t error = ptxcpu::refuse_in_capture()) return error;
    return ptxcpu::fill_in_stream(target, pitch, value, width, height, cudaStreamLegacy);
  });
}
cudaError_t cudaMemset2DAsync(void* target, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return api(__func__, [&] { return ptxcpu::fill_in_stream(target, pitch, value, width, height, stream); });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return api(__func__, [&] { return ptxcpu::symbol_region(symbol, 0, 0, address); });
}
cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return api(__func__, [&] {
    const auto* variable = ptxcpu::find_symbol(symbol);
    if (!variable) return cudaErrorInvalidSymbol;
    *size = variable->size;
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return api(__func__, [&] {
    void* address = nullptr;
    if (const cudaError_t error = ptxcpu::symbol_region(symbol, offset, bytes, &address)) return error;
    return ptxcpu::copy_in_stream(ptxcpu::flat(address, source, bytes), kind, stream);
  });
}
cudaError_t cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return api(__func__, [&] {
    void* address = nullptr;
    if (const cudaError_t error = ptxcpu::symbol_region(symbol, offset, bytes, &address)) return error;
    return ptxcpu::copy_in_stream(ptxcpu::flat(target, address, bytes), kind, stream);
  });
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return api(__func__, [&] {
    if (const cudaError_t error = ptxcpu::refuse_in_capture()) return error;
    return cudaMemcpyToSymbolAsync(symbol, source, bytes, offset, kind, cudaStreamLegacy);
  });
}
cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return api(__func__, [&] {
    if (const cudaError_t error = ptxcpu::refuse_in_capture()) return error;
    return cudaMemcpyFromSymbolAsync(target, symbol, bytes, offset, kind, cudaStreamLegacy);
  });
}
}
