// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// A tiled transposition done well, and one kernel for each thing that tools/gpu_model must object to.
#include "planted_kernels.h"

namespace pwdice::planted {

__global__ void good_kernel(const float* x, float* y) {
  __shared__ float tile[32][33];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  y[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void uncoalesced_kernel(const float* x, float* y) {
  __shared__ float tile[32][33];
  tile[threadIdx.x][threadIdx.y] = x[threadIdx.x * 32 + threadIdx.y];
  __syncthreads();
  y[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void conflicting_kernel(const float* x, float* y) {
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  y[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

// Every block reads everything again and stores a part of its own.
__global__ void greedy_kernel(const float* x, float* y) {
  float sum = 0;
  for (int k = 0; k < 32; ++k) sum += x[k * 32 + threadIdx.x];
  y[(blockIdx.x * 32 + threadIdx.y) * 32 + threadIdx.x] = sum;
}

// 64 live sums do not fit the 32 registers that two blocks of 1024 threads leave.
__global__ void __launch_bounds__(1024, 2) spilling_kernel(const float* x, float* y) {
  float sum[64];
#pragma unroll
  for (int k = 0; k < 64; ++k) sum[k] = x[k];
  for (int round = 0; round < 1000; ++round) {
#pragma unroll
    for (int k = 0; k < 64; ++k) sum[k] = sum[k] * sum[(k + 1) % 64] + x[64 + k];
  }
#pragma unroll
  for (int k = 0; k < 64; ++k) y[k * 1024 + threadIdx.x] = sum[k];
}

bool run() {
  constexpr int kGreedyBlocks = 16;
  const dim3 block(32, 32);
  float *x = nullptr, *y = nullptr;
  if (cudaMalloc(&x, 4096) != cudaSuccess || cudaMalloc(&y, kGreedyBlocks * 4096) != cudaSuccess) return false;
  cudaMemset(x, 0, 4096);
  good_kernel<<<1, block>>>(x, y);
  uncoalesced_kernel<<<1, block>>>(x, y);
  conflicting_kernel<<<1, block>>>(x, y);
  greedy_kernel<<<kGreedyBlocks, block>>>(x, y);
  const bool ok = cudaDeviceSynchronize() == cudaSuccess;
  cudaFree(x);
  cudaFree(y);
  return ok;
}

}  // namespace pwdice::planted
