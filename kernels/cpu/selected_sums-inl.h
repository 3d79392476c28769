// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Products with a matrix of zeros and ones, for any Highway target. Include in a file that uses foreach_target.
//
//   C(r, :) = sum over the k that row r selects of scale_k X(k, :)        C (m, n), X (k, n), n a multiple of kCols
//
// Four rows of X have sixteen sums. They are computed once, and then each r adds the one it selects: a quarter of the
// additions of a product and no multiplication (the method of the four Russians).
//
// Work      A strip of kCols columns at a time: the sums of kDepth rows of X stay in L1 while the rows of C pass by,
//           each with one load and one addition per four rows of X; a strip of more than about 100 rows of C in L2.
// Numerics  scale_k x_k is rounded; four of them are added, then these sums in the order of k.
// Cost      m n k / 4 additions, and 4 n k for every kRows rows of C.

#if defined(PWDICE_KERNELS_CPU_SELECTED_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_SELECTED_SUMS_INL_H_
#undef PWDICE_KERNELS_CPU_SELECTED_SUMS_INL_H_
#else
#define PWDICE_KERNELS_CPU_SELECTED_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "gemm_tile-inl.h"
#include "parallel.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

// Measured on Emerald Rapids (AVX-512, AVX2; 112 rows, 256 x 256): 2.1 and 2.3 times as fast as the product by tiles.
struct SelectedTile {
  static constexpr int64_t kCols = 32, kDepth = 32, kRows = 256;
  static constexpr int64_t kGroup = 4, kSums = 1 << kGroup;  // rows of X together, and their sums
  static constexpr int kVectors = static_cast<int>(kCols / kLanes);
  static_assert(kDepth / kGroup * kSums * kCols * sizeof(float) <= 16384, "half an L1 cache of 32 KiB");
};

// Which k each row selects: bit k % 32 of the word of k's piece and the row.
struct Selection {
  static_assert(SelectedTile::kDepth == 32);
  const uint32_t* words;
  int64_t rows;

  const uint32_t* piece(int64_t k) const { return words + k / SelectedTile::kDepth * rows; }
};

// sums[g][s] = the sum of those rows of X's group g that the bits of s select, columns [col, col + kCols); behind the
// last row of X there are zeros.
inline HWY_NOINLINE void sum_groups(Mat<const float> x, const float* scale, int64_t col, float* sums) {
  using T = SelectedTile;
  const FloatTag d;
  for (int64_t k = 0; k < x.rows; k += T::kGroup, sums += T::kSums * T::kCols) {
    for (int64_t c = 0; c < T::kCols; c += kLanes) {
      const auto row = [&](int64_t i) HWY_ATTR {
        return i < x.rows ? hn::Mul(hn::Set(d, scale[i]), hn::LoadU(d, x.row(i) + col + c)) : hn::Zero(d);
      };
      const Floats x0 = row(k), x1 = row(k + 1), x2 = row(k + 2), x3 = row(k + 3);
      const Floats low[] = {hn::Zero(d), x0, x1, hn::Add(x0, x1)};
      const Floats high[] = {hn::Zero(d), x2, x3, hn::Add(x2, x3)};
#pragma GCC unroll 16
      for (int s = 0; s < T::kSums; ++s) {
        const Floats sum = s < 4 ? low[s] : s % 4 == 0 ? high[s / 4] : hn::Add(low[s % 4], high[s / 4]);
        hn::Store(sum, d, sums + s * T::kCols + c);
      }
    }
  }
}

// kCols times the bits of group g, with one shift.
HWY_INLINE uint32_t sum_offset(uint32_t word, int g) {
  constexpr int kColsLog2 = 5;
  static_assert(SelectedTile::kCols == 1 << kColsLog2 && SelectedTile::kGroup == 4);
  const int shift = 4 * g - kColsLog2;
  return (shift >= 0 ? word >> shift : word << -shift) & (15u << kColsLog2);
}

// The sums of kGroups groups that each row selects, and what part has of them already if `add`, to finish(row, col, v).
template <int kGroups, class Finish>
HWY_NOINLINE void add_selected(const uint32_t* selected, int64_t rows, const float* sums, const float* part,
                               bool add, const Finish& finish) {
  using T = SelectedTile;
  const FloatTag d;
  for (int64_t r = 0; r < rows; ++r, part += T::kCols) {
    Floats sum[T::kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < T::kVectors; ++v) sum[v] = add ? hn::Load(d, part + v * kLanes) : hn::Zero(d);
    const uint32_t word = selected[r];
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) {
      const float* const from = sums + g * T::kSums * T::kCols + sum_offset(word, g);
#pragma GCC unroll 8
      for (int v = 0; v < T::kVectors; ++v) sum[v] = hn::Add(sum[v], hn::Load(d, from + v * kLanes));
    }
#pragma GCC unroll 8
    for (int v = 0; v < T::kVectors; ++v) finish(r, v * kLanes, sum[v]);
  }
}
template <class Finish, int kGroups = static_cast<int>(SelectedTile::kDepth / SelectedTile::kGroup)>
HWY_INLINE auto adder_of(int64_t groups) {
  if constexpr (kGroups > 1) {
    if (groups < kGroups) return adder_of<Finish, kGroups - 1>(groups);
  }
  return &add_selected<kGroups, Finish>;
}

// Asks for columns [col, col + kCols) of the rows of X that come next.
HWY_INLINE void expect_rows(Mat<const float> x, int64_t k, int64_t col) {
  using T = SelectedTile;
  if (k >= x.rows) k = 0, col += T::kCols;
  if (col >= x.cols) return;
  for (int64_t i = k; i < std::min(k + T::kDepth, x.rows); ++i) prefetch(x.row(i) + col, T::kCols);
}

// C to the sink, as of gemm-inl.h: sink(row, col, v, kLanes).
template <class Sink>
HWY_INLINE void selected_sums(const Selection& selection, Mat<const float> x, const float* scale,
                              const Sink& sink) {
  using T = SelectedTile;
  HWY_ALIGN float sums[T::kDepth / T::kGroup * T::kSums * T::kCols];
  HWY_ALIGN float part[T::kRows * T::kCols];
  for (int64_t begin = 0; begin < selection.rows; begin += T::kRows) {
    const int64_t rows = std::min(T::kRows, selection.rows - begin);
    for (int64_t col = 0; col < x.cols; col += T::kCols) {
      const auto keep = [&](int64_t r, int64_t c, Floats v)
                            HWY_ATTR { hn::Store(v, FloatTag(), part + r * T::kCols + c); };
      const auto deliver = [&](int64_t r, int64_t c, Floats v)
                               HWY_ATTR { sink(begin + r, col + c, v, kLanes); };
      for (int64_t k = 0; k < x.rows; k += T::kDepth) {
        const int64_t depth = std::min(T::kDepth, x.rows - k), groups = chunk_count(depth, T::kGroup);
        const uint32_t* const selected = selection.piece(k) + begin;
        sum_groups(x.slice_rows(k, depth), scale + k, col, sums);
        expect_rows(x, k + T::kDepth, col);
        k + depth < x.rows ? adder_of<decltype(keep)>(groups)(selected, rows, sums, part, k > 0, keep)
                           : adder_of<decltype(deliver)>(groups)(selected, rows, sums, part, k > 0, deliver);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
