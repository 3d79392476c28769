// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The tiles of pair_tile.cuh on the tensor cores of compute capability 8.0 and later (mma.sync, sums in
// FP32).
//
// A warp owns 16 rows and keeps them in registers as the A operand for the whole sweep; the tile in shared
// memory is the B operand of both products. With g = lane / 4 and t = lane % 4 a thread holds, of each 16 x 8
// result, rows g and g + 8 at columns 2t and 2t + 1. The probabilities become the A operand of the second
// product without leaving their registers: for BF16 the two layouts agree; for TF32 they agree once the eight
// columns of a step are taken in the order 0 2 4 6 1 3 5 7, which a sum does not mind.

#include <cuda_bf16.h>

#include "pair_tile.cuh"

namespace pwdice::cuda {

__device__ __forceinline__ uint32_t to_tf32(float x) {
  uint32_t bits = __float_as_uint(x);
#if __CUDA_ARCH__ >= 800
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
#endif
  return bits;
}

__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// c (16, 8) += a (16, 8) b (8, 8) in TF32
__device__ __forceinline__ void mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// c (16, 8) += a (16, 16) b (16, 8) in BF16
__device__ __forceinline__ void mma_bf16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Two 16 x 8 operands B whose rows (the k of the product) are rows of the tile: four 8 x 8 blocks,
// transposed.
__device__ __forceinline__ void load_transposed(uint32_t (&b)[4], const __nv_bfloat16* row) {
#if __CUDA_ARCH__ >= 800
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(from));
#endif
}

// What TF32 and BF16 share: the layout of scores and results over the threads.
template <class T, int D, int kPad>
class MmaTile {
 public:
  using Element = T;
  static constexpr int kWidth = D, kStride = D + kPad, kCols = 32, kRows = 128, kThreads = 256;
  static constexpr int kHeldRows = 2, kHeldCols = kCols / 4, kStages = 2;
  static constexpr int kTileElements = kCols * kStride;
  static constexpr size_t kSharedBytes = kStages * kTileElements * sizeof(T);
  static_assert(kRows == 16 * kThreads / 32, "a warp owns 16 rows");
  static_assert(kSharedBytes <= 48 << 10 && kPadRows % kRows == 0);

  __device__ explicit MmaTile(void* shared) : tiles_(static_cast<T*>(shared)) {}
  __device__ T* tiles() const { return tiles_; }
  __device__ int row(int i) const { return warp_ * 16 + g_ + 8 * i; }
  __device__ int col(int j) const { return j / 2 * 8 + 2 * t_ + j % 2; }
  // ex2.approx after one rounded product: relative error below 2^-21 + |x| 2^-23, far under that of the
  // scores.
  __device__ static float exponential(float x) { return __expf(x); }

  // Rows row(i), columns 8 q + 2t and the next of the (kRows, D) result.
  struct Accumulator {
    float v[D / 8][4] = {};
  };
  __device__ void store(const Accumulator& acc, float* rows) const {
#pragma unroll
    for (int q = 0; q < D / 8; ++q) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        store_vector(rows + row(i) * D + 8 * q + 2 * t_, make_float2(acc.v[q][2 * i], acc.v[q][2 * i + 1]));
      }
    }
  }

  __device__ void merge(Lse (&part)[2]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      part[i] = part[i] + shuffle_xor(part[i], 1);
      part[i] = part[i] + shuffle_xor(part[i], 2);
    }
  }
  __device__ bool holds_rows() const { return t_ == 0; }

 protected:
  // Brings the block's rows through the tile buffer, kCols at a time; take() runs in the warps that own them.
  template <class Take>
  __device__ void each_owner_tile(const T* rows, Take take) {
    for (int piece = 0; piece < kRows / kCols; ++piece) {
      load_tile<kCols, D, kStride, kThreads>(tiles_, rows + piece * kCols * D);
      wait_for_copies();
      __syncthreads();
      if (warp_ / 2 == piece) take(tiles_ + (warp_ % 2 * 16 + g_) * kStride);
      __syncthreads();
    }
  }

  int lane_ = static_cast<int>(threadIdx.x) % 32, warp_ = static_cast<int>(threadIdx.x) / 32;
  int g_ = lane_ / 4, t_ = lane_ % 4;
  T* tiles_;
};

template <int D>
class Tf32Tile : public MmaTile<float, D, 4> {
 public:
  using Base = MmaTile<float, D, 4>;
  using Base::Base;

  __device__ void load_owner(const float* rows) {
    this->each_owner_tile(rows, [&](const float* mine) {
#pragma unroll
      for (int k = 0; k < D / 8; ++k) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {  // (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
          owner_[k][e] = __float_as_uint(mine[e % 2 * 8 * Base::kStride + 8 * k + this->t_ + e / 2 * 4]);
        }
      }
    });
  }

  __device__ void score(const float* tile, float (&s)[2][8]) const {
#pragma unroll
    for (int block = 0; block < Base::kCols / 8; ++block) {
      float c[4] = {};
      const float* row = tile + (8 * block + this->g_) * Base::kStride + this->t_;
#pragma unroll
      for (int k = 0; k < D / 8; ++k) {
        mma_tf32(c, owner_[k], __float_as_uint(row[8 * k]), __float_as_uint(row[8 * k + 4]));
      }
      s[0][2 * block] = c[0], s[0][2 * block + 1] = c[1];
      s[1][2 * block] = c[2], s[1][2 * block + 1] = c[3];
    }
  }

  __device__ void apply(const float* tile, const float (&p)[2][8], typename Base::Accumulator& acc) const {
#pragma unroll
    for (int block = 0; block < Base::kCols / 8; ++block) {
      const uint32_t a[4] = {to_tf32(p[0][2 * block]), to_tf32(p[1][2 * block]), to_tf32(p[0][2 * block + 1]),
                             to_tf32(p[1][2 * block + 1])};
      const float* row = tile + (8 * block + 2 * this->t_) * Base::kStride + this->g_;
#pragma unroll
      for (int q = 0; q < D / 8; ++q) {
        mma_tf32(acc.v[q], a, __float_as_uint(row[8 * q]), __float_as_uint(row[Base::kStride + 8 * q]));
      }
    }
  }

 private:
  uint32_t owner_[D / 8][4];
};

template <int D>
class Bf16Tile : public MmaTile<__nv_bfloat16, D, 8> {
 public:
  using Base = MmaTile<__nv_bfloat16, D, 8>;
  using Base::Base;

  __device__ void load_owner(const __nv_bfloat16* rows) {
    this->each_owner_tile(rows, [&](const __nv_bfloat16* mine) {
#pragma unroll
      for (int k = 0; k < D / 16; ++k) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {  // pairs at 2t of rows g and g + 8, then at 2t + 8
          owner_[k][e] = word(mine + e % 2 * 8 * Base::kStride + 16 * k + 2 * this->t_ + e / 2 * 8);
        }
      }
    });
  }

  __device__ void score(const __nv_bfloat16* tile, float (&s)[2][8]) const {
#pragma unroll
    for (int block = 0; block < Base::kCols / 8; ++block) {
      float c[4] = {};
      const __nv_bfloat16* row = tile + (8 * block + this->g_) * Base::kStride + 2 * this->t_;
#pragma unroll
      for (int k = 0; k < D / 16; ++k) mma_bf16(c, owner_[k], word(row + 16 * k), word(row + 16 * k + 8));
      s[0][2 * block] = c[0], s[0][2 * block + 1] = c[1];
      s[1][2 * block] = c[2], s[1][2 * block + 1] = c[3];
    }
  }

  __device__ void apply(const __nv_bfloat16* tile, const float (&p)[2][8],
                        typename Base::Accumulator& acc) const {
#pragma unroll
    for (int step = 0; step < Base::kCols / 16; ++step) {
      const float* p0 = p[0] + 4 * step;
      const float* p1 = p[1] + 4 * step;
      const uint32_t a[4] = {pack_bf16(p0[0], p0[1]), pack_bf16(p1[0], p1[1]), pack_bf16(p0[2], p0[3]),
                             pack_bf16(p1[2], p1[3])};
      // Lanes 0-7 and 8-15 give the rows of the two halves of k, lanes 16-31 the same for the next 8 columns.
      const __nv_bfloat16* row = tile + (16 * step + this->lane_ % 16) * Base::kStride + this->lane_ / 16 * 8;
#pragma unroll
      for (int q = 0; q < D / 8; q += 2) {
        uint32_t b[4];
        load_transposed(b, row + 8 * q);
        mma_bf16(acc.v[q], a, b[0], b[1]);
        mma_bf16(acc.v[q + 1], a, b[2], b[3]);
      }
    }
  }

 private:
  __device__ static uint32_t word(const __nv_bfloat16* p) { return *reinterpret_cast<const uint32_t*>(p); }

  uint32_t owner_[D / 16][4];
};

}  // namespace pwdice::cuda
