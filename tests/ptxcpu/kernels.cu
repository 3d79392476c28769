// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "kernels.h"

namespace kernels {
namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 128;

int blocks_for(int n) { return (n + kThreads - 1) / kThreads; }

__global__ void saxpy_kernel(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void fill_kernel(float* out, float value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}

__global__ void row_lse_kernel(const float* __restrict__ q, const float* __restrict__ k,
                               float* __restrict__ lse, int m, int n, float inv_tau) {
  constexpr int kTile = 64;
  __shared__ float tile[kTile][kWidth + 1];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  float mine[kWidth];
  for (int d = 0; d < kWidth; d += 4) {
    const float4 v = row < m ? *reinterpret_cast<const float4*>(q + size_t(row) * kWidth + d) : float4{};
    mine[d] = v.x, mine[d + 1] = v.y, mine[d + 2] = v.z, mine[d + 3] = v.w;
  }
  float top = -INFINITY, sum = 0;
  for (int begin = 0; begin < n; begin += kTile) {
    __syncthreads();
    for (int i = threadIdx.x; i < kTile * kWidth; i += blockDim.x)
      tile[i / kWidth][i % kWidth] = begin + i / kWidth < n ? k[size_t(begin) * kWidth + i] : 0;
    __syncthreads();
    for (int j = 0; j < min(kTile, n - begin); ++j) {
      float score = 0;
#pragma unroll
      for (int d = 0; d < kWidth; ++d) score = fmaf(mine[d], tile[j][d], score);
      score *= inv_tau;
      const float larger = fmaxf(top, score);
      sum = sum * __expf(top - larger) + __expf(score - larger);
      top = larger;
    }
  }
  if (row < m) lse[row] = top + logf(sum);
}

__device__ unsigned to_tf32(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

__device__ void store_accumulator(float* c, const float (&d)[4]) {
  const int group = threadIdx.x / 4, t = threadIdx.x % 4;
  c[group * 8 + t * 2] = d[0], c[group * 8 + t * 2 + 1] = d[1];
  c[(group + 8) * 8 + t * 2] = d[2], c[(group + 8) * 8 + t * 2 + 1] = d[3];
}

__global__ void mma_tf32_kernel(const float* a, const float* b, float* c, int k) {
  const int group = threadIdx.x / 4, t = threadIdx.x % 4;
  float d[4] = {};
  for (int l = t; l < k; l += 8) {
    const unsigned a0 = to_tf32(a[group * k + l]), a1 = to_tf32(a[(group + 8) * k + l]);
    const unsigned a2 = to_tf32(a[group * k + l + 4]), a3 = to_tf32(a[(group + 8) * k + l + 4]);
    const unsigned b0 = to_tf32(b[group * k + l]), b1 = to_tf32(b[group * k + l + 4]);
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  store_accumulator(c, d);
}

__device__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ void copy_row_async(uint16_t* target, const uint16_t* source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(target)), "l"(source));
}

// Two stages of 16 columns: the copy of one overlaps the product of the other.
__global__ void mma_bf16_kernel(const uint16_t* a, const uint16_t* b, float* c, int k) {
  __shared__ __align__(16) uint16_t tile_a[2][16 * 16], tile_b[2][8 * 16];
  const int lane = threadIdx.x, row = lane / 2, half = lane % 2 * 8;
  const auto load = [&](int stage, int column) {
    copy_row_async(&tile_a[stage][row * 16 + half], a + row * k + column + half);
    if (lane < 16) copy_row_async(&tile_b[stage][row * 16 + half], b + row * k + column + half);
    asm volatile("cp.async.commit_group;");
  };
  float d[4] = {};
  load(0, 0);
  for (int i = 0; i < k / 16; ++i) {
    const bool more = i + 1 < k / 16;
    if (more) load((i + 1) % 2, (i + 1) * 16);
    if (more)
      asm volatile("cp.async.wait_group 1;");
    else
      asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    unsigned ra[4], rb[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
                 : "r"(shared_address(&tile_a[i % 2][lane % 16 * 16 + lane / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(rb[0]), "=r"(rb[1])
                 : "r"(shared_address(&tile_b[i % 2][lane % 8 * 16 + lane / 8 % 2 * 8])));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    __syncthreads();
  }
  store_accumulator(c, d);
}

__global__ void wmma_kernel(const half* a, const half* b, float* c, int k) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.0f);
  for (int l = 0; l < k; l += 16) {
    load_matrix_sync(fa, a + l, k);
    load_matrix_sync(fb, b + l, k);
    mma_sync(fc, fa, fb, fc);
  }
  store_matrix_sync(c, fc, 16, mem_row_major);
}

__device__ unsigned g_ticket;

__global__ void ticket_sum_kernel(const float* x, int n, float* partial, float* sum) {
  __shared__ float warps[kThreads / 32];
  __shared__ bool last;
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  float mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
  mine = cg::reduce(warp, mine, cg::plus<float>());
  if (warp.thread_rank() == 0) warps[warp.meta_group_rank()] = mine;
  block.sync();
  if (threadIdx.x == 0) {
    float total = 0;
    for (int i = 0; i < kThreads / 32; ++i) total += warps[i];
    partial[blockIdx.x] = total;
    __threadfence();
    last = atomicInc(&g_ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  block.sync();
  if (!last || threadIdx.x != 0) return;
  float total = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) total += static_cast<volatile float*>(partial)[i];
  *sum = total;
}

__global__ void warp_kernel(const uint32_t* in, uint32_t* out) {
  const unsigned lane = threadIdx.x;
  const uint32_t value = in[lane];
  out[4 * lane] = __shfl_down_sync(0xffffffffu, value, 3, 16) + __shfl_up_sync(0xffffffffu, value, 2);
  out[4 * lane + 1] = __ballot_sync(0xffffffffu, value & 1);
  out[4 * lane + 2] = __match_any_sync(0xffffffffu, value % 4);
  out[4 * lane + 3] = __reduce_add_sync(0xffffffffu, value) ^ __reduce_max_sync(0xffffffffu, value);
}

__constant__ float g_scale = 1;

__global__ void scale_kernel(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= g_scale;
}

__global__ void big_shared_kernel(float* out, int count) {
  extern __shared__ float memory[];
  for (int i = threadIdx.x; i < count; i += blockDim.x) memory[i] = float(i);
  __syncthreads();
  if (threadIdx.x == 0) *out = memory[count - 1];
}

}  // namespace

void saxpy(int n, float a, const float* x, float* y, cudaStream_t stream) {
  saxpy_kernel<<<blocks_for(n), kThreads, 0, stream>>>(n, a, x, y);
}
void fill_async(float* out, float value, int n, cudaStream_t stream) {
  fill_kernel<<<blocks_for(n), kThreads, 0, stream>>>(out, value, n);
}
void row_lse(const float* q, const float* k, float* lse, int m, int n, float inv_tau, cudaStream_t stream) {
  row_lse_kernel<<<blocks_for(m), kThreads, 0, stream>>>(q, k, lse, m, n, inv_tau);
}
void mma_tf32(const float* a, const float* b, float* c, int k, cudaStream_t stream) {
  mma_tf32_kernel<<<1, 32, 0, stream>>>(a, b, c, k);
}
void mma_bf16_ldmatrix(const uint16_t* a, const uint16_t* b, float* c, int k, cudaStream_t stream) {
  mma_bf16_kernel<<<1, 32, 0, stream>>>(a, b, c, k);
}
void wmma_f16(const uint16_t* a, const uint16_t* b, float* c, int k, cudaStream_t stream) {
  wmma_kernel<<<1, 32, 0, stream>>>(reinterpret_cast<const half*>(a), reinterpret_cast<const half*>(b), c, k);
}
void ticket_sum(const float* x, int n, float* partial, float* sum, cudaStream_t stream) {
  ticket_sum_kernel<<<8, kThreads, 0, stream>>>(x, n, partial, sum);
}
void warp_operations(const uint32_t* in, uint32_t* out, cudaStream_t stream) {
  warp_kernel<<<1, 32, 0, stream>>>(in, out);
}
cudaError_t set_scale(float scale, cudaStream_t stream) {
  return cudaMemcpyToSymbolAsync(g_scale, &scale, sizeof scale, 0, cudaMemcpyHostToDevice, stream);
}
void scale_by_constant(float* x, int n, cudaStream_t stream) {
  scale_kernel<<<blocks_for(n), kThreads, 0, stream>>>(x, n);
}
cudaError_t big_shared(float* out, size_t bytes, bool raise_limit, cudaStream_t stream) {
  if (raise_limit) {
    const cudaError_t error =
        cudaFuncSetAttribute(big_shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
    if (error) return error;
  }
  big_shared_kernel<<<1, kThreads, bytes, stream>>>(out, int(bytes / sizeof(float)));
  return cudaGetLastError();
}

}  // namespace kernels
