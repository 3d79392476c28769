// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "library_calls.h"

namespace library_calls {
namespace {

// CUB's protocol: a call without memory says how much it needs.
template <class Call>
cudaError_t with_scratch(cudaStream_t stream, Call call) {
  size_t bytes = 0;
  if (const cudaError_t error = call(nullptr, bytes)) return error;
  void* scratch = nullptr;
  if (const cudaError_t error = cudaMallocAsync(&scratch, bytes ? bytes : 1, stream)) return error;
  const cudaError_t error = call(scratch, bytes);
  cudaFreeAsync(scratch, stream);
  return error ? error : cudaStreamSynchronize(stream);
}

template <class T>
thrust::device_ptr<T> device(T* pointer) {
  return thrust::device_pointer_cast(pointer);
}

}  // namespace

cudaError_t sort_pairs(const uint32_t* keys, uint32_t* sorted_keys, const int* values, int* sorted_values,
                       int n, cudaStream_t stream) {
  return with_scratch(stream, [&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values, sorted_values, n, 0, 32,
                                           stream);
  });
}
cudaError_t sort_floats(const float* keys, float* sorted_keys, int n, cudaStream_t stream) {
  return with_scratch(stream, [&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, sorted_keys, n, 0, 32, stream);
  });
}
cudaError_t inclusive_sum(const int* in, int* out, int n, cudaStream_t stream) {
  return with_scratch(stream, [&](void* scratch, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, in, out, n, stream);
  });
}
cudaError_t exclusive_sum(const float* in, float* out, int n, cudaStream_t stream) {
  return with_scratch(stream, [&](void* scratch, size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, in, out, n, stream);
  });
}
cudaError_t reduce_sum(const float* in, float* out, int n, cudaStream_t stream) {
  return with_scratch(stream, [&](void* scratch, size_t& bytes) {
    return cub::DeviceReduce::Sum(scratch, bytes, in, out, n, stream);
  });
}
cudaError_t reduce_max(const float* in, float* out, int n, cudaStream_t stream) {
  return with_scratch(stream, [&](void* scratch, size_t& bytes) {
    return cub::DeviceReduce::Max(scratch, bytes, in, out, n, stream);
  });
}
cudaError_t select_flagged(const int* in, const uint8_t* flags, int* out, int* count, int n,
                           cudaStream_t stream) {
  return with_scratch(stream, [&](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, in, flags, out, count, n, stream);
  });
}

cudaError_t thrust_sort(float* data, int n, cudaStream_t stream) {
  thrust::sort(thrust::cuda::par.on(stream), device(data), device(data) + n);
  return cudaStreamSynchronize(stream);
}
cudaError_t thrust_sequence(int* data, int n, cudaStream_t stream) {
  thrust::sequence(thrust::cuda::par.on(stream), device(data), device(data) + n, 3, 2);
  return cudaStreamSynchronize(stream);
}
cudaError_t thrust_gather(const int* map, const float* source, float* out, int n, cudaStream_t stream) {
  thrust::gather(thrust::cuda::par.on(stream), device(map), device(map) + n, device(source), device(out));
  return cudaStreamSynchronize(stream);
}

}  // namespace library_calls
