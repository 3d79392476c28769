// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "faults.h"

#undef NDEBUG
#include <cassert>

namespace faults {
namespace {

__device__ float block_sum(float value, float* partial) {
  for (int offset = 16; offset; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0;
  for (int i = 0; i < kThreads / 32; ++i) total += partial[i];
  return total;
}

__device__ void stage(float* target, const float* source, bool wait) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(target));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n cp.async.commit_group;\n" ::"r"(to), "l"(source));
  if (wait) asm volatile("cp.async.wait_group 0;\n");
}

// Bugs of single accesses, which need no part of the kernel's own flow.
__device__ float bad_access(Bug bug, const float* x, float* y, const float* scratch, float* tile, int n) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (bug == Bug::kReadPastEnd && i == n - 1) return x[n];
  if (bug == Bug::kWritePastEnd && i == n - 1) y[n] = 0;
  if (bug == Bug::kNullPointer && i == 3) return *static_cast<const volatile float*>(nullptr);
  if (bug == Bug::kMisaligned && i == 5) {
    const float4 v = *reinterpret_cast<const float4*>(x + 1);
    return v.x + v.y + v.z + v.w;
  }
  if (bug == Bug::kSharedPastEnd && i == 7) tile[kThreads] = 0;
  if (bug == Bug::kUninitializedGlobal && i == 9) return *scratch;
  if (bug == Bug::kAssert) assert(i != 11);
  if (bug == Bug::kEndlessWait && i == 0)
    while (*reinterpret_cast<const volatile float*>(scratch) != 1.0f) {
    }
  return 0;
}

__device__ float bad_warp_use(Bug bug, float value, float* tile) {
  const int lane = threadIdx.x % 32;
  if (bug == Bug::kPartialShuffle && lane < 16) return __shfl_xor_sync(0xffffffffu, value, 1);
  if (bug == Bug::kMissingSyncwarp) {
    tile[threadIdx.x] = value;
    return static_cast<volatile float*>(tile)[threadIdx.x ^ 1] + tile[threadIdx.x ^ 1];
  }
  return 0;
}

__global__ void reverse_and_sum(Bug bug, const float* x, float* y, float* sum, const float* scratch, int n) {
  extern __shared__ float tile[];
  __shared__ float partial[kThreads / 32], staged[kThreads], unwritten[32];
  const int t = threadIdx.x, i = blockIdx.x * kThreads + t;
  float value = x[i] + bad_access(bug, x, y, scratch, tile, n);
  tile[t] = value;
  if (bug != Bug::kMissingBarrier) __syncthreads();
  const float reversed = tile[kThreads - 1 - t];
  if (bug == Bug::kMissingBarrierBefore) tile[t] = 0;
  stage(&staged[t], &x[i], bug != Bug::kMissingAsyncWait);
  __syncthreads();
  value += bad_warp_use(bug, value, tile) + 0 * staged[(t + 1) % kThreads];
  if (bug == Bug::kUninitializedShared) value += unwritten[t % 32];
  if (bug == Bug::kShuffleAfterExit && t % 32 >= 30) return;
  if (bug == Bug::kBarrierAfterExit && t >= kThreads - 32) return;
  if (bug == Bug::kDivergentBarrier) {
    if (t < 128) {
      __syncthreads();
    } else {
      y[i] = 1;
      __syncthreads();
    }
  }
  const float total = block_sum(value, partial);
  if (t == 0) {
    if (bug == Bug::kBlocksRace) {
      *sum += total;
    } else {
      atomicAdd(sum, total);
    }
  }
  y[i] = reversed;
}

}  // namespace

void run(Bug bug, const float* x, float* y, float* sum, const float* scratch, int n, cudaStream_t stream) {
  reverse_and_sum<<<n / kThreads, kThreads, kThreads * sizeof(float), stream>>>(bug, x, y, sum, scratch, n);
}

}  // namespace faults
