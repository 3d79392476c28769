// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Cumulative sums and quantiles.
//   sums        each block of 2048 sums itself, the blocks' totals are added up in order, and each value is
//               offset + its own running sum. CUB loads and stores; the sums themselves are not CUB's, whose
//               look-back adds in an order that depends on timing and may give a value below the one before
//               it. Here the last value of a thread is exactly the next thread's offset: never decreasing,
//               and equal across items of weight zero, which is what sampling relies on.
//   quantiles   CUB's radix sort, then the values at the ranks. NaN sorts to an end, where it is seen.
#include <algorithm>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "launch.cuh"

namespace pwdice::cuda {
namespace {

struct Tile {
  static constexpr int kThreads = 256, kItems = 8, kSize = kThreads * kItems;
  static_assert(kSize * sizeof(float) >= sizeof(double),
                "scan_scratch_bytes() has room for the blocks' totals");
};

// Running sums of this thread's items, from its offset within the block. Returns the block's total to all.
__device__ double running_sums(const float (&x)[Tile::kItems], double (&y)[Tile::kItems], double* offsets) {
  double sum = 0.0;
#pragma unroll
  for (int k = 0; k < Tile::kItems; ++k) y[k] = sum += static_cast<double>(x[k]);
  offsets[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    double before = 0.0;
    for (int t = 0; t < Tile::kThreads; ++t) {
      const double own = offsets[t];
      offsets[t] = before;
      before += own;
    }
    offsets[Tile::kThreads] = before;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < Tile::kItems; ++k) y[k] += offsets[threadIdx.x];
  return offsets[Tile::kThreads];
}

__device__ void load_items(Vec<const float> x, float (&items)[Tile::kItems]) {
  using Load = cub::BlockLoad<float, Tile::kThreads, Tile::kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  __shared__ typename Load::TempStorage memory;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * Tile::kSize;
  Load(memory).Load(x.data + begin, items, static_cast<int>(min(x.size - begin, int64_t{Tile::kSize})), 0.f);
}

__global__ void __launch_bounds__(Tile::kThreads) scan_totals_kernel(Vec<const float> x, double* totals) {
  __shared__ double offsets[Tile::kThreads + 1];
  float items[Tile::kItems];
  double sums[Tile::kItems];
  load_items(x, items);
  const double total = running_sums(items, sums, offsets);
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

__global__ void scan_offsets_kernel(int64_t blocks, double* totals) {
  double before = 0.0;
  for (int64_t b = 0; b < blocks; ++b) {
    const double own = totals[b];
    totals[b] = before;
    before += own;
  }
}

__global__ void __launch_bounds__(Tile::kThreads) scan_kernel(CumulativeSum op, const double* offset) {
  using Store = cub::BlockStore<double, Tile::kThreads, Tile::kItems, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  __shared__ double offsets[Tile::kThreads + 1];
  __shared__ typename Store::TempStorage memory;
  float items[Tile::kItems];
  double sums[Tile::kItems];
  load_items(op.x, items);
  running_sums(items, sums, offsets);
#pragma unroll
  for (int k = 0; k < Tile::kItems; ++k) sums[k] += offset[blockIdx.x];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * Tile::kSize;
  Store(memory).Store(op.y.data + begin, sums,
                      static_cast<int>(min(op.y.size - begin, int64_t{Tile::kSize})));
}

// The ranks travel as an argument: p is host memory, and an op copies nothing.
struct Ranks {
  static constexpr int kCount = 32;
  int64_t at[kCount];
  int count;
};
__global__ void pick_kernel(Ranks ranks, const float* sorted, int64_t n, float* result) {
  const int k = static_cast<int>(threadIdx.x);
  if (k >= ranks.count) return;
  const float first = sorted[0], last = sorted[n - 1];
  result[k] = first != first ? first : last != last ? last : sorted[ranks.at[k]];
}

size_t sort_bytes(const Launch& on, int64_t n) {
  size_t bytes = 0;
  PWDICE_CUDA_CHECK(on.ctx().cuda(),
                    cub::DeviceRadixSort::SortKeys(nullptr, bytes, static_cast<const float*>(nullptr),
                                                   static_cast<float*>(nullptr), n, 0, 32, on.stream()),
                    "{}: planning the sort of {} values", on.op(), n);
  return bytes;
}

}  // namespace

void cumulative_sum(Context& ctx, const CumulativeSum& op) {
  if (op.x.size == 0) return;
  const Launch on(ctx, "cumulative_sum");
  const ScratchScope scope(ctx.scratch());
  const unsigned blocks = on.grid(op.x.size, Tile::kSize);
  double* totals = on.scratch<double>(blocks);
  scan_totals_kernel<<<blocks, Tile::kThreads, 0, on.stream()>>>(op.x, totals);
  on.check();
  scan_offsets_kernel<<<1, 1, 0, on.stream()>>>(blocks, totals);
  on.check();
  scan_kernel<<<blocks, Tile::kThreads, 0, on.stream()>>>(op, totals);
  on.check();
}

void quantiles(Context& ctx, const Quantiles& op) {
  if (op.result.size == 0) return;
  const Launch on(ctx, "quantiles");
  const ScratchScope scope(ctx.scratch());
  const int64_t n = op.x.size;
  float* sorted = on.scratch<float>(n);
  size_t bytes = sort_bytes(on, n);
  void* memory = on.scratch<std::byte>(static_cast<int64_t>(bytes));
  PWDICE_CUDA_CHECK(ctx.cuda(),
                    cub::DeviceRadixSort::SortKeys(memory, bytes, op.x.data, sorted, n, 0, 32, on.stream()),
                    "quantiles: sorting {} values", n);
  for (int64_t begin = 0; begin < op.p.size; begin += Ranks::kCount) {
    Ranks ranks{};
    ranks.count = static_cast<int>(std::min<int64_t>(Ranks::kCount, op.p.size - begin));
    for (int k = 0; k < ranks.count; ++k) ranks.at[k] = quantile_rank(op.p[begin + k], n);
    pick_kernel<<<1, Ranks::kCount, 0, on.stream()>>>(ranks, sorted, n, op.result.data + begin);
    on.check();
  }
}

// The sorted copy; CUB's second copy; its histograms and look-back state, one of 1 KiB per block of at least
// 1024 values.
size_t scan_scratch_bytes(int64_t n) {
  const auto values = static_cast<size_t>(n) * sizeof(float);
  return 2 * Scratch::rounded(values) + Scratch::rounded(values / 4 + (size_t{64} << 10));
}

}  // namespace pwdice::cuda
