// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The product of weight gradients, for any Highway target. Include in a file that uses foreach_target.
//
//   C = sum_t A_t^T B_t      A_t (k_t, m), B_t (k_t, n);     sums = column sums of one of the A_t (the bias)
//
// k is cut into at most eight slices by shape alone; a slice packs its own rows, makes a partial result, and
// the partial results are added in order. Rows stay with the thread that made them, and no core reads what
// another one has just packed, which costs a quarter of the time on two cores.

#if defined(PWDICE_KERNELS_CPU_GEMM_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_GEMM_COLUMNS_INL_H_
#undef PWDICE_KERNELS_CPU_GEMM_COLUMNS_INL_H_
#else
#define PWDICE_KERNELS_CPU_GEMM_COLUMNS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

struct ColumnsTerm {
  Mat<const float> a, b;  // (k, m), (k, n)
  bool sum_a = false;     // sums = column sums of this a
};
using ColumnsTerms = std::initializer_list<ColumnsTerm>;

inline constexpr int64_t kSliceRows = 128;
static_assert(kNarrow <= Tile::kBlockRows);

struct StoreInto {
  Mat<float> c;
  bool add = false;

  HWY_INLINE void operator()(int64_t row, int64_t col, Floats v, int64_t count) const {
    float* to = c.row(row) + col;
    store_part(add ? hn::Add(load_part(to, count), v) : v, to, count);
  }
};
struct StoreTransposed {
  Mat<float> c;

  HWY_INLINE void operator()(int64_t row, int64_t col, Floats v, int64_t count) const {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v, FloatTag(), lanes);
    for (int64_t i = 0; i < count; ++i) c(col + i, row) = lanes[i];
  }
};

// total_c += sum over `depth` rows of rows[k][c], rows `stride` apart; four vectors at a time, so that the
// adds do not wait for one another.
HWY_INLINE void add_column_sums(const float* rows, int64_t stride, int64_t depth, int64_t cols,
                                double* total) {
  constexpr int64_t kStep = 4 * kLanes;
  const FloatTag d;
  HWY_ALIGN float sums[kStep];
  for (int64_t c = 0; c < cols; c += kStep) {
    const int64_t count = std::min(kStep, cols - c);
    const float* row = rows + c;
    if (count == kStep) {
      Floats s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
      for (int64_t k = 0; k < depth; ++k, row += stride) {
        s0 = hn::Add(s0, hn::LoadU(d, row));
        s1 = hn::Add(s1, hn::LoadU(d, row + kLanes));
        s2 = hn::Add(s2, hn::LoadU(d, row + 2 * kLanes));
        s3 = hn::Add(s3, hn::LoadU(d, row + 3 * kLanes));
      }
      hn::Store(s0, d, sums), hn::Store(s1, d, sums + kLanes);
      hn::Store(s2, d, sums + 2 * kLanes), hn::Store(s3, d, sums + 3 * kLanes);
    } else {
      for (int64_t v = 0; v < count; v += kLanes) {
        Floats s = hn::Zero(d);
        for (int64_t k = 0; k < depth; ++k) s = hn::Add(s, load_part(row + k * stride + v, count - v));
        hn::Store(s, d, sums + v);
      }
    }
    for (int64_t i = 0; i < count; ++i) total[c + i] += static_cast<double>(sums[i]);
  }
}

inline void store_sums(const double* total, Vec<float> sums) {
  for (int64_t i = 0; i < sums.size; ++i) sums[i] = static_cast<float>(total[i]);
}

// -- slices of k -----------------------------------------------------------------------------------------

// Rows [begin, end) of one term.
struct Slice {
  const ColumnsTerm* term;
  int64_t begin, end;
};

struct Slices {
  Slice list[kGemmMaxSlices];
  int64_t count = 0;

  explicit Slices(ColumnsTerms terms) {
    const auto most = kGemmMaxSlices / static_cast<int64_t>(terms.size());
    for (const ColumnsTerm& term : terms) {
      const int64_t pieces = std::clamp<int64_t>(term.a.rows / kSliceRows, 1, most);
      const int64_t step = chunk_count(term.a.rows, pieces);
      for (int64_t row = 0; row < term.a.rows; row += step) {
        list[count++] = {&term, row, std::min(row + step, term.a.rows)};
      }
    }
  }
};

struct PackBuffer {
  float *strips, *panels;
};

// c = sum over the slice of a^T b, both packed.
inline void multiply_wide(const Slice& slice, const PackBuffer& packed, Mat<float> c) {
  const auto& [a, b, sum_a] = *slice.term;
  HWY_ALIGN float part[Tile::kRows * Tile::kCols];
  for (int64_t k = slice.begin; k < slice.end; k += Tile::kDepth) {
    const int64_t depth = std::min(Tile::kDepth, slice.end - k);
    pack_strips(a.row(k), a.stride, depth, c.rows, packed.strips);
    pack_panels(b.row(k), b.stride, depth, c.cols, packed.panels);
    const StoreInto sink{c, k > slice.begin};
    for (int64_t col = 0; col < c.cols; col += Tile::kCols) {
      for (int64_t row = 0; row < c.rows; row += Tile::kRows) {
        tile_product<Tile::kRows, Along::Columns>(depth, packed.strips + row * depth, Tile::kRows,
                                                  packed.panels + col * depth, part, false);
        deliver(part, {row, std::min<int64_t>(row + Tile::kRows, c.rows)}, col, c.cols, sink);
      }
    }
  }
}

// The same when one side is narrow (a first layer or a head) and packing it would cost more than it gains: it
// is read in place, and the wide side packed panel by panel. Delivered as (narrow, wide).
template <class Sink>
HWY_INLINE void multiply_narrow(Mat<const float> narrow, Mat<const float> wide, const Sink& sink) {
  HWY_ALIGN float packed[Tile::kDepth * Tile::kCols];
  HWY_ALIGN float part[Tile::kBlockRows * Tile::kCols];
  for (int64_t col = 0; col < wide.cols; col += Tile::kCols) {
    for (int64_t k = 0; k < wide.rows; k += Tile::kDepth) {
      const int64_t depth = std::min(Tile::kDepth, wide.rows - k);
      pack_panels(wide.row(k) + col, wide.stride, depth, std::min(Tile::kCols, wide.cols - col), packed);
      tile_rows<Along::Columns>(narrow.cols, depth, narrow.row(k), narrow.stride, packed, part, k > 0);
    }
    deliver(part, {0, narrow.cols}, col, wide.cols, sink);
  }
}

inline void multiply_slice(const Slice& slice, const PackBuffer& packed, Mat<float> c, double* total) {
  const auto& [a, b, sum_a] = *slice.term;
  const int64_t rows = slice.end - slice.begin;
  for (int64_t k = slice.begin; sum_a && k < slice.end; k += Tile::kDepth) {
    add_column_sums(a.row(k), a.stride, std::min(Tile::kDepth, slice.end - k), a.cols, total);
  }
  if (a.cols <= kNarrow) {
    multiply_narrow(a.slice_rows(slice.begin, rows), b.slice_rows(slice.begin, rows), StoreInto{c});
  } else if (b.cols <= kNarrow) {
    multiply_narrow(b.slice_rows(slice.begin, rows), a.slice_rows(slice.begin, rows), StoreTransposed{c});
  } else {
    multiply_wide(slice, packed, c);
  }
}

// c += partial_1 + partial_2 + ..., each of c's shape and contiguous, one after another
inline void add_partials(ThreadPool& pool, Mat<float> c, const float* partials, int64_t count) {
  const int64_t step = std::max<int64_t>(1, 8192 / c.cols);
  pool.parallel_for(count == 0 ? 0 : chunk_count(c.rows, step), [&](int64_t chunk, int) HWY_ATTR {
    const Range rows = chunk_range(c.rows, step, chunk);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = 0; j < c.cols; j += kLanes) {
        float* to = c.row(i) + j;
        Floats sum = load_part(to, c.cols - j);
        for (int64_t s = 0; s < count; ++s) {
          sum = hn::Add(sum, load_part(partials + (s * c.rows + i) * c.cols + j, c.cols - j));
        }
        store_part(sum, to, c.cols - j);
      }
    }
  });
}

// c (m, n); sums (m), or empty when no term asks. Borrows at most gemm_columns_bytes(m, n). The first slice
// writes to c itself. Buffers belong to threads while there are enough, so that they stay in the thread's
// cache; which buffer a slice uses does not show in its result.
inline void columns_product(Context& ctx, ColumnsTerms terms, Mat<float> c, Vec<float> sums, const char* op) {
  const Slices slices(terms);
  if (slices.count == 0) {
    for (int64_t i = 0; i < c.rows; ++i) std::fill_n(c.row(i), c.cols, 0.f);
    std::fill_n(sums.data, sums.size, 0.f);
    return;
  }
  const ScratchScope scope(ctx.scratch());
  Scratch& scratch = ctx.scratch();
  PackBuffer buffers[kGemmMaxSlices] = {};
  const bool wide = c.rows > kNarrow && c.cols > kNarrow;
  const int64_t count = wide ? std::min<int64_t>(slices.count, ctx.threads()) : 0;
  for (int64_t i = 0; i < count; ++i) {
    buffers[i].strips = scratch.take<float>(Tile::kDepth * strip_count(c.rows) * Tile::kRows, op);
    buffers[i].panels = scratch.take<float>(Tile::kDepth * panel_count(c.cols) * Tile::kCols, op);
  }
  float* partials = scratch.take<float>((slices.count - 1) * c.size(), op);
  double* totals = scratch.take<double>(slices.count * c.rows, op);
  std::fill_n(totals, slices.count * c.rows, 0.0);
  const bool by_thread = ctx.threads() <= slices.count;
  ctx.pool().parallel_for(slices.count, [&](int64_t s, int thread) HWY_ATTR {
    const Mat<float> partial = s == 0 ? c : Mat<float>(partials + (s - 1) * c.size(), c.rows, c.cols);
    multiply_slice(slices.list[s], buffers[by_thread ? thread : s], partial, totals + s * c.rows);
  });
  add_partials(ctx.pool(), c, partials, slices.count - 1);
  for (int64_t s = 1; s < slices.count; ++s) {
    for (int64_t i = 0; i < c.rows; ++i) totals[i] += totals[s * c.rows + i];
  }
  store_sums(totals, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
