// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The register tile of the matrix products and the packing of their operands, for any Highway target. Include
// in a file that uses foreach_target.
//
//   part[r][c] (+)= sum_k a(r, k) b(k, c)        r < kRows, c < kCols = 2 vectors
//
// kRows x 2 accumulators, two vectors of b and one broadcast element of a fill the registers: 6 rows with 16
// registers, 14 (AVX-512) or 12 (NEON) with 32. Per k the tile needs kRows + 2 loads for 2 kRows FMAs, so the
// FMA units are the limit as long as b comes from L1.
//
// b is packed in panels of kCols columns, panel p as [k][kCols], the last one padded with zeros: unpacked
// rows whose stride is a power of two would all fall into a few sets of the L1 cache. a is read in place when
// its rows run along k, and packed as [k][kRows] otherwise.
//
// Measured on Zen 3 (AVX2, 256 x 256 weights): 96 % of the FMA peak from L2-resident operands; unpacked
// operands of a weight gradient 58 %.

#if defined(PWDICE_KERNELS_CPU_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_GEMM_TILE_INL_H_
#undef PWDICE_KERNELS_CPU_GEMM_TILE_INL_H_
#else
#define PWDICE_KERNELS_CPU_GEMM_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "../view.h"
#include "gemm.h"
#include "hwy/highway.h"
#include "tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;  // of constant size: the build leaves out the targets without one
using Floats = hn::Vec<FloatTag>;
inline constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));

struct Tile {
#if HWY_TARGET <= HWY_AVX3  // any AVX-512: a better target has a lower bit
  static constexpr int kRows = 14;
  static constexpr int64_t kBlockRows = 56;
#elif HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
  static constexpr int kRows = 12;
  static constexpr int64_t kBlockRows = 48;
#else
  static constexpr int kRows = 6;
  static constexpr int64_t kBlockRows = 48;
#endif
  static constexpr int kVectors = 2;
  static constexpr int64_t kCols = kVectors * kLanes;
  static constexpr int64_t kDepth = kGemmDepth;
  static_assert(kRows <= kGemmMaxTileRows && kCols <= kGemmMaxTileCols);
  static_assert(kBlockRows <= kGemmMaxBlockRows && kBlockRows % kRows == 0);
};

// -- part of a vector ------------------------------------------------------------------------------------

// The first `count` lanes of a vector, count > 0, of which all matter when count >= kLanes.
HWY_INLINE Floats load_part(const float* p, int64_t count) {
  const FloatTag d;
  return count >= kLanes ? hn::LoadU(d, p) : load_n(d, p, static_cast<size_t>(count));
}

HWY_INLINE void store_part(Floats v, float* p, int64_t count) {
  const FloatTag d;
  count >= kLanes ? hn::StoreU(v, d, p) : store_n(v, d, p, static_cast<size_t>(count));
}

// Asks for the cache lines of `count` floats some hundred cycles before they are needed. The tiles touch many
// short runs at a wide stride, which the hardware does not foresee.
HWY_INLINE void prefetch(const float* p, int64_t count) {
  constexpr int64_t kLine = 16;
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(p + i);
}

// -- the tile --------------------------------------------------------------------------------------------

// How the tile finds a(r, k): rows of a row-major matrix, or columns of one (k runs down the rows).
enum class Along { Rows, Columns };

// With one vector the tile has the first kLanes columns of the panel alone. b is a panel, or kCols columns of a
// matrix in place.
template <int kRows, Along kAlong, int kVectors = Tile::kVectors, class Finish>
HWY_INLINE void tile_sums(int64_t depth, const float* HWY_RESTRICT a, int64_t a_stride,
                          const float* HWY_RESTRICT b, const Finish& finish, int64_t b_stride = Tile::kCols) {
  const FloatTag d;
  Floats sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  // A pointer for every three rows of A and a stride that an address takes once or twice: with one pointer there would be
  // more multiples of the stride than registers.
  constexpr int kTogether = kAlong == Along::Rows ? 3 : kRows,
                kPointers = (kRows + kTogether - 1) / kTogether;
  const int64_t row_step = kAlong == Along::Rows ? a_stride : 1,
                k_step = kAlong == Along::Rows ? 1 : a_stride;
  const float* a_at[kPointers];
#pragma GCC unroll 8
  for (int p = 0; p < kPointers; ++p) a_at[p] = a + p * kTogether * row_step;
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k) {
    Floats b_k[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) b_k[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Floats a_rk = hn::Set(d, a_at[r / kTogether][r % kTogether * row_step]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(a_rk, b_k[v], sum[r][v]);
    }
    b += b_stride;
#pragma GCC unroll 8
    for (int p = 0; p < kPointers; ++p) a_at[p] += k_step;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) finish(r, v * kLanes, sum[r][v]);
  }
}

// The sums to `part`, or added to it.
template <int kRows, Along kAlong, int kVectors = Tile::kVectors>
HWY_NOINLINE void tile_product(int64_t depth, const float* a, int64_t a_stride, const float* b,
                               float* HWY_RESTRICT part, bool add) {
  const FloatTag d;
  tile_sums<kRows, kAlong, kVectors>(depth, a, a_stride, b, [&](int row, int64_t col, Floats sum) HWY_ATTR {
    float* to = part + row * Tile::kCols + col;
    hn::Store(add ? hn::Add(hn::Load(d, to), sum) : sum, d, to);
  });
}

// Any number of rows: whole tiles, then the rest in tiles of 8, 4, 2 and 1.
template <Along kAlong, int kVectors = Tile::kVectors>
HWY_INLINE void tile_rows(int64_t rows, int64_t depth, const float* a, int64_t a_stride, const float* b,
                          float* part, bool add) {
  const int64_t row_step = kAlong == Along::Rows ? a_stride : 1;
  const auto take = [&](int64_t count, auto product) {
    for (; rows >= count; rows -= count) {
      product(depth, a, a_stride, b, part, add);
      a += count * row_step;
      part += count * Tile::kCols;
    }
  };
  take(Tile::kRows, tile_product<Tile::kRows, kAlong, kVectors>);
  if constexpr (Tile::kRows > 8) take(8, tile_product<8, kAlong, kVectors>);
  take(4, tile_product<4, kAlong, kVectors>);
  take(2, tile_product<2, kAlong, kVectors>);
  take(1, tile_product<1, kAlong, kVectors>);
}

// -- packing ---------------------------------------------------------------------------------------------

// Panels [k][kCols] of `cols` columns of b, one after another, the last one padded with zeros.
HWY_INLINE void pack_panels(const float* b, int64_t stride, int64_t depth, int64_t cols, float* to) {
  const FloatTag d;
  const int64_t whole = cols / Tile::kCols * Tile::kCols, rest = cols - whole;
  for (int64_t k = 0; k < depth; ++k, b += stride, to += Tile::kCols) {
    for (int64_t c = 0; c < whole; c += Tile::kCols) {
      float* panel = to + c * depth;
      for (int64_t v = 0; v < Tile::kCols; v += kLanes) hn::Store(hn::LoadU(d, b + c + v), d, panel + v);
    }
    if (rest == 0) continue;
    float* panel = to + whole * depth;
    for (int64_t v = 0; v < Tile::kCols; v += kLanes) {
      hn::Store(v < rest ? load_part(b + whole + v, rest - v) : hn::Zero(d), d, panel + v);
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
inline constexpr int64_t kTransposed = 1;
HWY_INLINE void transpose(const float* from, int64_t, float* to, int64_t) { *to = *from; }
#else
// to[j][i] = from[i][j] for kLanes rows of `from` and kTransposed columns: every vector is made of one piece of four
// floats out of each fourth row, then four such vectors are turned around piece by piece.
inline constexpr int64_t kTransposed = 4;
HWY_INLINE void transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  const FloatTag d;
  const auto pieces = [&](int64_t row) HWY_ATTR {
    const float* last = from + (row + kLanes - 4) * from_stride;
    Floats v = hn::LoadDup128(d, last);
#pragma GCC unroll 4
    for (int64_t lanes = kLanes - 4; lanes > 0; lanes -= 4) {
      last -= 4 * from_stride;
      v = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(lanes)), hn::LoadDup128(d, last), v);
    }
    return v;
  };
  const Floats r0 = pieces(0), r1 = pieces(1), r2 = pieces(2), r3 = pieces(3);
  const Floats low02 = hn::InterleaveLower(d, r0, r2), low13 = hn::InterleaveLower(d, r1, r3);
  const Floats high02 = hn::InterleaveUpper(d, r0, r2), high13 = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, low02, low13), d, to);
  hn::StoreU(hn::InterleaveUpper(d, low02, low13), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, high02, high13), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, high02, high13), d, to + 3 * to_stride);
}
#endif

// The same panel of the transposed matrix: column c of the panel is row c of w.
HWY_INLINE void pack_panel_transposed(const float* w, int64_t stride, int64_t depth, int64_t cols,
                                      float* to) {
  const int64_t whole_cols = cols / kLanes * kLanes, whole_depth = depth / kTransposed * kTransposed;
  for (int64_t c = 0; c < whole_cols; c += kLanes) {
    for (int64_t k = 0; k < whole_depth; k += kTransposed) {
      transpose(w + c * stride + k, stride, to + k * Tile::kCols + c, Tile::kCols);
    }
  }
  for (int64_t c = 0; c < Tile::kCols; ++c) {
    for (int64_t k = c < whole_cols ? whole_depth : 0; k < depth; ++k) {
      to[k * Tile::kCols + c] = c < cols ? w[c * stride + k] : 0.f;
    }
  }
}

// Strips [k][kRows] of `cols` columns of a, one after another: the left operand of a product that sums over
// rows. Whole vectors are written where the next k overwrites what is too much. Columns past the last one are
// rows of the result that are never delivered, so zeros and leftovers are equally good there.
HWY_INLINE void pack_strips(const float* a, int64_t stride, int64_t depth, int64_t cols, float* to) {
  const FloatTag d;
  for (int64_t k = 0; k < depth; ++k, a += stride, to += Tile::kRows) {
    for (int64_t c = 0; c < cols; c += Tile::kRows) {
      float* strip = to + c * depth;
      for (int64_t v = 0; v < Tile::kRows; v += kLanes) {
        const Floats values = c + v < cols ? load_part(a + c + v, cols - c - v) : hn::Zero(d);
        k + 1 < depth ? hn::StoreU(values, d, strip + v) : store_part(values, strip + v, Tile::kRows - v);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
