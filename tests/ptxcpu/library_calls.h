// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Device-wide primitives of CUB and Thrust on device pointers, each a plain function for the tests.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace library_calls {

// Every function works in `stream` with temporary memory of its own and returns the last error.
cudaError_t sort_pairs(const uint32_t* keys, uint32_t* sorted_keys, const int* values, int* sorted_values,
                       int n, cudaStream_t stream);
cudaError_t sort_floats(const float* keys, float* sorted_keys, int n, cudaStream_t stream);
cudaError_t inclusive_sum(const int* in, int* out, int n, cudaStream_t stream);
cudaError_t exclusive_sum(const float* in, float* out, int n, cudaStream_t stream);
cudaError_t reduce_sum(const float* in, float* out, int n, cudaStream_t stream);
cudaError_t reduce_max(const float* in, float* out, int n, cudaStream_t stream);
cudaError_t select_flagged(const int* in, const uint8_t* flags, int* out, int* count, int n,
                           cudaStream_t stream);

cudaError_t thrust_sort(float* data, int n, cudaStream_t stream);
cudaError_t thrust_sequence(int* data, int n, cudaStream_t stream);
cudaError_t thrust_gather(const int* map, const float* source, float* out, int n, cudaStream_t stream);

}  // namespace library_calls
