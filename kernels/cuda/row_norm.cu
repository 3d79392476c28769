// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// z_i = v_i / |v_i|        d_v = (d_z - z <z, d_z>) / |v|        a zero row: z = 0 and no gradient
// Work     one warp owns a row; lanes take columns 32 apart, so loads are full lines.
#include "row_norm.cuh"

namespace pwdice::cuda {
namespace {

using Tile = RowPerWarp;

__global__ void __launch_bounds__(Tile::kThreads) row_norm_forward_kernel(RowNormForward op) {
  const int64_t i = Tile::row();
  if (i >= op.v.rows) return;
  const int lane = Tile::lane();
  const float* v = op.v.row(i);
  float* z = op.z.row(i);
  const RowLength length = row_length(v, op.v.cols, lane);
  for (int64_t j = lane; j < op.v.cols; j += 32) z[j] = length.normalised(v[j]);
  if (lane == 0) op.inv_norm[i] = length.inverse();
}

__global__ void __launch_bounds__(Tile::kThreads) row_norm_backward_kernel(RowNormBackward op) {
  const int64_t i = Tile::row();
  if (i >= op.z.rows) return;
  const int lane = Tile::lane();
  const float *z = op.z.row(i), *d_z = op.d_z.row(i);
  float* d_v = op.d_v.row(i);
  float along = 0.f;
  for (int64_t j = lane; j < op.z.cols; j += 32) along += z[j] * d_z[j];
  along = warp_fold<SumFold>(along);
  for (int64_t j = lane; j < op.z.cols; j += 32) d_v[j] = (d_z[j] - z[j] * along) * op.inv_norm[i];
}

}  // namespace

void row_norm_forward(Context& ctx, const RowNormForward& op) {
  if (op.v.rows == 0) return;
  const Launch on(ctx, "row_norm_forward");
  row_norm_forward_kernel<<<on.grid(op.v.rows, Tile::kRows), Tile::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void row_norm_backward(Context& ctx, const RowNormBackward& op) {
  if (op.z.rows == 0) return;
  const Launch on(ctx, "row_norm_backward");
  row_norm_backward_kernel<<<on.grid(op.z.rows, Tile::kRows), Tile::kThreads, 0, on.stream()>>>(op);
  on.check();
}

}  // namespace pwdice::cuda
