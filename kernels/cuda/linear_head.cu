// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Layers of at most 8 outputs; see linear.cu.
#include "linear_head.h"
#include "math.cuh"
#include "row_norm.cuh"

namespace pwdice::cuda {
namespace {

constexpr int kOut = LinearHead::kOutputs;

__global__ void __launch_bounds__(RowPerWarp::kThreads) head_forward_kernel(LinearForward op) {
  const int64_t i = RowPerWarp::row();
  if (i >= op.x.rows) return;
  const int lane = RowPerWarp::lane();
  const int outputs = static_cast<int>(op.w.rows);
  float sum[kOut] = {};
  for (int64_t k = lane; k < op.x.cols; k += 32) {
    const float x = op.x(i, k);
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
      if (o < outputs) sum[o] = fmaf(x, op.w(o, k), sum[o]);
    }
  }
#pragma unroll
  for (int o = 0; o < kOut; ++o) {
    if (o >= outputs) break;
    const float total = warp_fold<SumFold>(sum[o]);
    if (lane == o) op.y(i, o) = activate(op.act, total + op.b[o]);
  }
}

__global__ void __launch_bounds__(Each::kThreads) head_backward_input_kernel(LinearBackwardInput op) {
  const int outputs = static_cast<int>(op.w.rows);
  for_each_element(op.d_x.rows, op.d_x.cols, [&](int64_t i, int64_t k) {
    float sum = 0.f;
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
      if (o < outputs) sum = fmaf(op.d_pre(i, o), op.w(o, k), sum);
    }
    op.d_x(i, k) = op.x_act == Activation::None ? sum : through(op.x_act, op.x(i, k), sum);
  });
}

// Column k == in stands for the bias, whose input is 1. A thread owns a column and sums a chunk in order.
__global__ void __launch_bounds__(Each::kThreads)
    head_backward_params_kernel(LinearBackwardParams op, int64_t chunks, float* parts) {
  const int64_t in = op.x.cols, k = static_cast<int64_t>(blockIdx.x) * Each::kThreads + threadIdx.x;
  const int outputs = static_cast<int>(op.d_pre.cols);
  if (k > in) return;
  for (int64_t chunk = blockIdx.y; chunk < chunks; chunk += gridDim.y) {
    const int64_t begin = chunk * LinearHead::kChunkRows;
    const int64_t end = min(begin + LinearHead::kChunkRows, op.x.rows);
    float sum[kOut] = {};
    for (int64_t i = begin; i < end; ++i) {
      const float x = k < in ? op.x(i, k) : 1.f;
#pragma unroll
      for (int o = 0; o < kOut; ++o) {
        if (o < outputs) sum[o] = fmaf(op.d_pre(i, o), x, sum[o]);
      }
    }
#pragma unroll
    for (int o = 0; o < kOut; ++o) {
      if (o < outputs) parts[(chunk * outputs + o) * (in + 1) + k] = sum[o];
    }
  }
}

__global__ void __launch_bounds__(Each::kThreads)
    merge_head_params_kernel(int64_t chunks, const float* parts, Mat<float> d_w, Vec<float> d_b) {
  const int64_t width = d_w.cols + 1, size = d_w.rows * width;
  for_each_element(d_w.rows, width, [&](int64_t o, int64_t k) {
    float sum = 0.f;
    for (int64_t c = 0; c < chunks; ++c) sum += parts[c * size + o * width + k];
    if (k < d_w.cols) {
      d_w(o, k) = sum;
    } else {
      d_b[o] = sum;
    }
  });
}

}  // namespace

void head_forward(const Launch& on, const LinearForward& op) {
  head_forward_kernel<<<on.grid(op.x.rows, RowPerWarp::kRows), RowPerWarp::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void head_backward_input(const Launch& on, const LinearBackwardInput& op) {
  head_backward_input_kernel<<<on.grid(op.d_x.size()), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void head_backward_params(const Launch& on, const LinearBackwardParams& op) {
  const ScratchScope scope(on.ctx().scratch());
  const int64_t chunks = LinearHead::chunks(op.x.rows), out = op.d_w.rows, width = op.x.cols + 1;
  float* parts = on.scratch<float>(chunks * out * width);
  if (chunks > 0) {
    const dim3 grid(on.grid(width, Each::kThreads), chunk_blocks(chunks));
    head_backward_params_kernel<<<grid, Each::kThreads, 0, on.stream()>>>(op, chunks, parts);
    on.check();
  }
  merge_head_params_kernel<<<on.grid(out * width), Each::kThreads, 0, on.stream()>>>(chunks, parts, op.d_w,
                                                                                     op.d_b);
  on.check();
}

}  // namespace pwdice::cuda
