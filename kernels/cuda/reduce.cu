// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Reductions to one number, by row and by column; the order of every sum is fixed by the shape (reduce.cuh).
//   to one number  chunks of 8192, the chunks' parts merged in double
//   by row         one warp owns a row
//   by column      one block owns 32 columns and strides over chunks of 512 rows: a warp reads 32
//                  neighbouring columns of one row, so loads are full lines; then one thread per column
//                  merges the chunks in order, in double
#include "reduce.cuh"

namespace pwdice::cuda {
namespace {

struct Tile {
  static constexpr int kThreads = 256, kRows = kThreads / 32;
  static constexpr int kColumns = 32, kChunkRows = 512;
  static_assert(kChunkRows % kRows == 0);
  static_assert(kChunkRows == kReduceRows, "column_reduce_scratch_bytes() counts such chunks");

  __host__ __device__ static int64_t chunks(int64_t rows) { return (rows + kChunkRows - 1) / kChunkRows; }
};

struct Load {
  Vec<const float> x;
  __device__ float operator()(int64_t i) const { return x[i]; }
};
struct LoadSquare {
  Vec<const float> x;
  __device__ float operator()(int64_t i) const { return x[i] * x[i]; }
};
struct LoadProduct {
  Vec<const float> a, b;
  __device__ float operator()(int64_t i) const { return a[i] * b[i]; }
};
struct LoadLse {
  Vec<const float> x;
  __device__ Lse operator()(int64_t i) const { return {x[i], 1.f}; }
};
struct LoadNotFinite {
  Vec<const float> x;
  __device__ float operator()(int64_t i) const { return isfinite(x[i]) ? 0.f : 1.f; }
};

struct Store {
  Vec<float> result;
  double scale;
  __device__ void operator()(double total) const { result[0] = static_cast<float>(scale * total); }
};
struct StoreRoot {
  Vec<float> result;
  __device__ void operator()(double total) const { result[0] = static_cast<float>(sqrt(total)); }
};
struct StoreLse {
  Vec<float> result;
  __device__ void operator()(Lse total) const { result[0] = value(total); }
};
struct StoreNone {  // 1 when nothing was counted
  Vec<float> flag;
  __device__ void operator()(float worst) const { flag[0] = worst > 0.f ? 0.f : 1.f; }
};

__global__ void __launch_bounds__(Tile::kThreads) row_sum_kernel(RowSum op) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * Tile::kRows + threadIdx.x / 32;
  if (i >= op.x.rows) return;
  const int lane = threadIdx.x % 32;
  float sum = 0.f;
  for (int64_t j = lane; j < op.x.cols; j += 32) sum += op.x(i, j);
  sum = warp_fold<SumFold>(sum);
  if (lane == 0) op.y[i] = sum;
}

// Folds a chunk's rows of this thread's column, and the block's warps in order; the result is warp 0's.
template <class T, class Term>
__device__ T fold_column_chunk(Mat<const float> x, int64_t chunk, int64_t j, T zero, Term term) {
  __shared__ T warps[Tile::kRows][Tile::kColumns];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t begin = chunk * Tile::kChunkRows;
  const int64_t end = min(begin + Tile::kChunkRows, x.rows);
  T sum = zero;
  if (j < x.cols) {
    for (int64_t i = begin + warp; i < end; i += Tile::kRows) sum += term(x(i, j));
  }
  warps[warp][lane] = sum;
  __syncthreads();
  if (warp == 0) {
    for (int w = 1; w < Tile::kRows; ++w) sum += warps[w][lane];
  }
  __syncthreads();  // the next chunk's sums go to the same place
  return sum;
}

__global__ void __launch_bounds__(Tile::kThreads) column_sum_kernel(Mat<const float> x, float* parts) {
  const int64_t j = static_cast<int64_t>(blockIdx.x) * Tile::kColumns + threadIdx.x % 32;
  for (int64_t chunk = blockIdx.y; chunk < Tile::chunks(x.rows); chunk += gridDim.y) {
    const float sum = fold_column_chunk(x, chunk, j, 0.f, [](float v) { return v; });
    if (threadIdx.x < 32 && j < x.cols) parts[chunk * x.cols + j] = sum;
  }
}

// Deviations from the mean in double; a first sweep with shift 0 gives the means themselves.
__global__ void __launch_bounds__(Tile::kThreads)
    column_moment_kernel(Mat<const float> x, const double* mean, double* parts) {
  const int64_t j = static_cast<int64_t>(blockIdx.x) * Tile::kColumns + threadIdx.x % 32;
  const double shift = mean == nullptr || j >= x.cols ? 0.0 : mean[j];
  const bool square = mean != nullptr;
  for (int64_t chunk = blockIdx.y; chunk < Tile::chunks(x.rows); chunk += gridDim.y) {
    const double sum = fold_column_chunk(x, chunk, j, 0.0, [=](float v) {
      const double d = static_cast<double>(v) - shift;
      return square ? d * d : d;
    });
    if (threadIdx.x < 32 && j < x.cols) parts[chunk * x.cols + j] = sum;
  }
}

template <class Part>
__device__ double merge_chunks(int64_t chunks, int64_t cols, const Part* parts, int64_t j) {
  double total = 0.0;
  for (int64_t c = 0; c < chunks; ++c) total += static_cast<double>(parts[c * cols + j]);
  return total;
}

__global__ void __launch_bounds__(Each::kThreads)
    merge_columns_kernel(int64_t chunks, const float* parts, Vec<float> y) {
  for_each_item(y.size,
                [&](int64_t j) { y[j] = static_cast<float>(merge_chunks(chunks, y.size, parts, j)); });
}

__global__ void __launch_bounds__(Each::kThreads)
    merge_means_kernel(int64_t chunks, const double* parts, double count, double* mean, Vec<float> result) {
  for_each_item(result.size, [&](int64_t j) {
    mean[j] = merge_chunks(chunks, result.size, parts, j) / count;
    result[j] = static_cast<float>(mean[j]);
  });
}

__global__ void __launch_bounds__(Each::kThreads)
    merge_deviations_kernel(int64_t chunks, const double* parts, double count, Vec<float> result) {
  for_each_item(result.size, [&](int64_t j) {
    result[j] = static_cast<float>(sqrt(merge_chunks(chunks, result.size, parts, j) / count));
  });
}

dim3 column_grid(const Launch& on, Mat<const float> x) {
  return dim3(on.grid(x.cols, Tile::kColumns), chunk_blocks(Tile::chunks(x.rows)));
}

}  // namespace

void reduce_sum(Context& ctx, const Reduce& op) {
  const Launch on(ctx, "reduce_sum");
  fold<SumFold>(on, op.x.size, Load{op.x}, Store{op.result, 1.0});
}

void reduce_mean(Context& ctx, const Reduce& op) {
  const Launch on(ctx, "reduce_mean");
  fold<SumFold>(on, op.x.size, Load{op.x}, Store{op.result, 1.0 / static_cast<double>(op.x.size)});
}

void reduce_max(Context& ctx, const Reduce& op) {
  const Launch on(ctx, "reduce_max");
  fold<MaxFold>(on, op.x.size, Load{op.x}, Store{op.result, 1.0});
}

void reduce_logsumexp(Context& ctx, const Reduce& op) {
  const Launch on(ctx, "reduce_logsumexp");
  fold<LseFold>(on, op.x.size, LoadLse{op.x}, StoreLse{op.result});
}

void reduce_norm(Context& ctx, const Reduce& op) {
  const Launch on(ctx, "reduce_norm");
  fold<SumFold>(on, op.x.size, LoadSquare{op.x}, StoreRoot{op.result});
}

void dot(Context& ctx, const Dot& op) {
  const Launch on(ctx, "dot");
  fold<SumFold>(on, op.a.size, LoadProduct{op.a, op.b}, Store{op.result, 1.0});
}

void all_finite(Context& ctx, const AllFinite& op) {
  const Launch on(ctx, "all_finite");
  fold<MaxFold>(on, op.x.size, LoadNotFinite{op.x}, StoreNone{op.flag});
}

void row_sum(Context& ctx, const RowSum& op) {
  if (op.x.rows == 0) return;
  const Launch on(ctx, "row_sum");
  row_sum_kernel<<<on.grid(op.x.rows, Tile::kRows), Tile::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void column_sum(Context& ctx, const ColumnSum& op) {
  if (op.x.cols == 0) return;
  const Launch on(ctx, "column_sum");
  const ScratchScope scope(ctx.scratch());
  const int64_t chunks = Tile::chunks(op.x.rows);
  float* parts = on.scratch<float>(chunks * op.x.cols);
  if (chunks > 0) {
    column_sum_kernel<<<column_grid(on, op.x), Tile::kThreads, 0, on.stream()>>>(op.x, parts);
    on.check();
  }
  merge_columns_kernel<<<on.grid(op.x.cols), Each::kThreads, 0, on.stream()>>>(chunks, parts, op.y);
  on.check();
}

void column_moments(Context& ctx, const ColumnMoments& op) {
  if (op.x.cols == 0) return;
  const Launch on(ctx, "column_moments");
  const ScratchScope scope(ctx.scratch());
  const int64_t chunks = Tile::chunks(op.x.rows);
  const dim3 grid = column_grid(on, op.x);
  double* parts = on.scratch<double>(chunks * op.x.cols);
  double* mean = on.scratch<double>(op.x.cols);
  const double n = static_cast<double>(op.x.rows);
  column_moment_kernel<<<grid, Tile::kThreads, 0, on.stream()>>>(op.x, nullptr, parts);
  on.check();
  merge_means_kernel<<<on.grid(op.x.cols), Each::kThreads, 0, on.stream()>>>(chunks, parts, n, mean, op.mean);
  on.check();
  column_moment_kernel<<<grid, Tile::kThreads, 0, on.stream()>>>(op.x, mean, parts);
  on.check();
  merge_deviations_kernel<<<on.grid(op.x.cols), Each::kThreads, 0, on.stream()>>>(
      chunks, parts, op.unbiased ? n - 1 : n, op.deviation);
  on.check();
}

}  // namespace pwdice::cuda
