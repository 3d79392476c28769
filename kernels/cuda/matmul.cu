// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// c = op(a) op(b), by the products of gemm.h; of two transposed operands b is turned first.
#include "gemm.h"

namespace pwdice::cuda {
namespace {

// 32 x 32 values through shared memory: loads and stores are both full lines. One column of padding keeps the
// reads down a column free of bank conflicts.
struct Tile {
  static constexpr int kSide = 32, kRows = 8, kThreads = kSide * kRows;
};

// A block owns 32 columns and strides over bands of 32 rows.
__global__ void __launch_bounds__(Tile::kThreads)
    transpose_kernel(Mat<const float> x, int64_t bands, float* y) {
  __shared__ float tile[Tile::kSide][Tile::kSide + 1];
  const int64_t col = static_cast<int64_t>(blockIdx.x) * Tile::kSide;
  const int lane = static_cast<int>(threadIdx.x) % Tile::kSide,
            first = static_cast<int>(threadIdx.x) / Tile::kSide;
  const int cols = static_cast<int>(min(x.cols - col, int64_t{Tile::kSide}));
  for (int64_t band = blockIdx.y; band < bands; band += gridDim.y) {
    const int64_t row = band * Tile::kSide;
    const int rows = static_cast<int>(min(x.rows - row, int64_t{Tile::kSide}));
    for (int r = first; r < rows; r += Tile::kRows) {
      if (lane < cols) tile[r][lane] = x(row + r, col + lane);
    }
    __syncthreads();
    for (int r = first; r < cols; r += Tile::kRows) {
      if (lane < rows) y[(col + r) * x.rows + row + lane] = tile[lane][r];
    }
    __syncthreads();  // the next band goes to the same tile
  }
}

}  // namespace

void matmul(Context& ctx, const Matmul& op) {
  const Launch on(ctx, "matmul");
  const ScratchScope scope(ctx.scratch());
  const int64_t k = op.transpose_a ? op.a.rows : op.a.cols;
  Mat<const float> b = op.b;
  const bool both = op.transpose_a && op.transpose_b && b.size() > 0;
  if (both) {
    float* turned = on.scratch<float>(b.size());
    const int64_t bands = ceil_div(b.rows, Tile::kSide);
    const dim3 grid(on.grid(b.cols, Tile::kSide), chunk_blocks(bands));
    transpose_kernel<<<grid, Tile::kThreads, 0, on.stream()>>>(b, bands, turned);
    on.check();
    b = {turned, b.cols, b.rows};
  }
  gemm(on, {op.transpose_a, op.transpose_b && !both, op.c.rows, op.c.cols, k, op.a.data, op.a.stride, b.data,
            b.stride, op.c.data, op.c.stride});
}

size_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k) {
  return gemm_scratch_bytes(m, n, k) + Scratch::rounded(static_cast<size_t>(n * k) * sizeof(float));
}

}  // namespace pwdice::cuda
