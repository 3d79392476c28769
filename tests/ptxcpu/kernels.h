// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Kernels for the tests of execution, of the runtime and of the counters, with their launchers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#ifdef __CUDACC__
#define TEST_HD __host__ __device__
#else
#define TEST_HD
#endif

namespace kernels {

void saxpy(int n, float a, const float* x, float* y, cudaStream_t stream);
void fill_async(float* out, float value, int n, cudaStream_t stream);

// One row per thread: logsumexp of scores q k^T / tau for width 32; k in tiles of shared memory.
constexpr int kWidth = 32;
void row_lse(const float* q, const float* k, float* lse, int m, int n, float inv_tau, cudaStream_t stream);

// c (16, 8) = a (16, k) b (8, k)^T on one warp, by mma.sync.
void mma_tf32(const float* a, const float* b, float* c, int k, cudaStream_t stream);
void mma_bf16_ldmatrix(const uint16_t* a, const uint16_t* b, float* c, int k, cudaStream_t stream);
// c (16, 16) = a (16, k) b (16, k)^T by nvcuda::wmma; a and b are float16.
void wmma_f16(const uint16_t* a, const uint16_t* b, float* c, int k, cudaStream_t stream);

// Sum by a ticket: the last block adds the partial sums (one for each of 8 blocks).
void ticket_sum(const float* x, int n, float* partial, float* sum, cudaStream_t stream);

// out[lane] of one warp: shuffles, votes, match and redux, four words per lane.
void warp_operations(const uint32_t* in, uint32_t* out, cudaStream_t stream);

// Device variables of the module.
cudaError_t set_scale(float scale, cudaStream_t stream);
void scale_by_constant(float* x, int n, cudaStream_t stream);

// A launch with more dynamic shared memory than 48 KiB.
cudaError_t big_shared(float* out, size_t bytes, bool raise_limit, cudaStream_t stream);

// ---- one body on both sides: the results must agree in every bit ------------------------------------

constexpr int kOperations = 40;
constexpr int kIntrinsics = 12;
void device_operations(uint64_t* out, int cases, cudaStream_t stream);
void host_operations(uint64_t seed, uint64_t* out);
void device_intrinsics(uint32_t* out, int cases, cudaStream_t stream);

// ---- math functions, ten per case --------------------------------------------------------------------

constexpr int kFunctions = 10;
void math_functions(const float* x, float* out, int n, cudaStream_t stream);

// ---- access patterns whose cost is known -------------------------------------------------------------

enum class Pattern {
  kCoalesced,
  kStrided,
  kBroadcast,
  kVector4,
  kConflictFree,
  kTwoWay,
  kSixteenWay,
  kPadded,
  kVectorShared
};
void access_pattern(Pattern pattern, const float* in, float* out,
                    cudaStream_t stream);  // one warp, 2048 floats
void ldmatrix_pattern(bool padded, uint32_t* out, cudaStream_t stream);

}  // namespace kernels
