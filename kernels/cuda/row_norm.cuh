// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "reduce.cuh"

namespace pwdice::cuda {

// The length of a row as largest * root: squares of 1e-30 or 1e30 neither vanish nor overflow. largest is 0
// for a row without a usable length (the inverse would be no float) and NaN for a row that has one.
struct RowLength {
  float largest, root;

  __device__ float normalised(float x) const {
    return largest == 0.f ? 0.f : largest != largest ? largest : x / largest / root;
  }
  __device__ float inverse() const {
    return largest == 0.f ? 0.f : largest != largest ? largest : 1.f / (largest * root);
  }
};

// Of a row of `cols` values, by one warp; the same in every lane.
__device__ __forceinline__ RowLength row_length(const float* v, int64_t cols, int lane) {
  float largest = 0.f;
  for (int64_t j = lane; j < cols; j += 32) largest = MaxFold::join(largest, fabsf(v[j]));
  largest = warp_fold<MaxFold>(largest);
  float sum = 0.f;
  if (largest > 0.f) {
    for (int64_t j = lane; j < cols; j += 32) {
      const float x = v[j] / largest;
      sum += x * x;
    }
  }
  const float root = sqrtf(warp_fold<SumFold>(sum));
  return {isinf(1.f / (largest * root)) ? 0.f : largest, root};
}

// Kernels with one warp per row.
struct RowPerWarp {
  static constexpr int kThreads = 256, kRows = kThreads / 32;
  __device__ static int64_t row() { return static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / 32; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
};

}  // namespace pwdice::cuda
