// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The product of weight gradients, for any Highway target. Include in a file that uses foreach_target.
//
//   C = sum_t A_t^T B_t      A_t (k_t, m), B_t (k_t, n);     sums = column sums of one of the A_t (the bias)
//
// Both operands run across k, so both are packed, 256 rows at a time, to stay in L2: A in strips, B in
// panels. When one side is narrow (a first layer or a head) packing both would cost more than the product:
// then each chunk owns panels of the wide side, packs them into its own buffer and reads the narrow side in
// place. Either way an element of C has one owner, which adds the blocks of k in order.

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

inline constexpr int64_t kNarrow = 32;
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

// -- one side narrow -------------------------------------------------------------------------------------

// wide (k, n), n wide; narrow (k, m), m <= kNarrow. The result is delivered as (m, n).
struct NarrowTerm {
  Mat<const float> narrow, wide;
  bool sum_wide;
};

// One panel of the result, and the sums of the wide side's columns that belong to it.
template <class Sink>
HWY_INLINE void narrow_panel(const NarrowTerm* terms, int64_t count, int64_t panel, const Sink& sink,
                             Vec<float> sums) {
  HWY_ALIGN float packed[Tile::kDepth * Tile::kCols];
  HWY_ALIGN float part[Tile::kBlockRows * Tile::kCols] = {};
  double total[Tile::kCols] = {};
  const int64_t m = terms->narrow.cols, n = terms->wide.cols;
  const int64_t col = panel * Tile::kCols, cols = std::min(Tile::kCols, n - col);
  for (int64_t t = 0; t < count; ++t) {
    const auto& [narrow, wide, sum_wide] = terms[t];
    for (int64_t k = 0; k < wide.rows; k += Tile::kDepth) {
      const int64_t depth = std::min(Tile::kDepth, wide.rows - k);
      pack_panels(wide.row(k) + col, wide.stride, depth, cols, packed);
      tile_rows<Along::Columns>(m, depth, narrow.row(k), narrow.stride, packed, part, true);
      if (sum_wide) add_column_sums(packed, Tile::kCols, depth, Tile::kCols, total);
    }
  }
  deliver(part, {0, m}, col, n, sink);
  if (sums.size > 0) store_sums(total, sums.slice(col, cols));
}

template <class Sink>
void narrow_product(ThreadPool& pool, const NarrowTerm* terms, int64_t count, const Sink& sink,
                    Vec<float> sums) {
  const int64_t panels = panel_count(terms->wide.cols);
  int64_t depth = 0;
  for (int64_t t = 0; t < count; ++t) depth += terms[t].wide.rows;
  const int64_t step =
      std::clamp<int64_t>(65536 / std::max<int64_t>(1, depth * Tile::kCols * terms->narrow.cols), 1,
                          std::max<int64_t>(1, panels));
  pool.parallel_for(chunk_count(panels, step), [&](int64_t chunk, int) HWY_ATTR {
    const Range range = chunk_range(panels, step, chunk);
    for (int64_t p = range.begin; p < range.end; ++p) narrow_panel(terms, count, p, sink, sums);
  });
}

// -- both sides wide -------------------------------------------------------------------------------------

struct ColumnsScratch {
  float *strips, *panels;
  double* total;
};

// Rows [k, k + depth) of a term: eight strips of A or four panels of B to a chunk, row by row, so that a
// chunk reads whole cache lines that lie beside one another.
inline void pack_columns(ThreadPool& pool, const ColumnsTerm& term, int64_t k, int64_t depth,
                         const ColumnsScratch& to) {
  constexpr int64_t kStripCols = 8 * Tile::kRows, kPanelCols = 4 * Tile::kCols;
  const int64_t strip_chunks = chunk_count(term.a.cols, kStripCols);
  const int64_t panel_chunks = chunk_count(term.b.cols, kPanelCols);
  pool.parallel_for(strip_chunks + panel_chunks, [&](int64_t chunk, int) HWY_ATTR {
    if (chunk < strip_chunks) {
      const auto [begin, end] = chunk_range(term.a.cols, kStripCols, chunk);
      pack_strips(term.a.row(k) + begin, term.a.stride, depth, end - begin, to.strips + begin * depth);
      if (term.sum_a)
        add_column_sums(term.a.row(k) + begin, term.a.stride, depth, end - begin, to.total + begin);
    } else {
      const auto [begin, end] = chunk_range(term.b.cols, kPanelCols, chunk - strip_chunks);
      pack_panels(term.b.row(k) + begin, term.b.stride, depth, end - begin, to.panels + begin * depth);
    }
  });
}

inline void wide_product(ThreadPool& pool, ColumnsTerms terms, Mat<float> c, Vec<float> sums,
                         const ColumnsScratch& scratch) {
  std::fill_n(scratch.total, c.rows, 0.0);
  bool add = false;
  for (const ColumnsTerm& term : terms) {
    for (int64_t k = 0; k < term.a.rows; k += kGemmPackedRows, add = true) {
      const int64_t depth = std::min(kGemmPackedRows, term.a.rows - k);
      pack_columns(pool, term, k, depth, scratch);
      multiply_all(pool, c.rows, Strips{scratch.strips, depth}, Panels{scratch.panels, depth, c.cols},
                   StoreInto{c, add});
    }
  }
  if (!add) {
    for (int64_t i = 0; i < c.rows; ++i) std::fill_n(c.row(i), c.cols, 0.f);
  }
  store_sums(scratch.total, sums);
}

// -- either ----------------------------------------------------------------------------------------------

// c (m, n); sums (m), or empty when no term asks. Borrows at most gemm_columns_bytes(m, n). Two terms at
// most.
inline void columns_product(Context& ctx, ColumnsTerms terms, Mat<float> c, Vec<float> sums, const char* op) {
  ThreadPool& pool = ctx.pool();
  if (c.rows > kNarrow && c.cols > kNarrow) {
    const ScratchScope scope(ctx.scratch());
    const int64_t strips = strip_count(c.rows) * Tile::kRows, panels = panel_count(c.cols) * Tile::kCols;
    float* packed_a = ctx.scratch().take<float>(kGemmPackedRows * strips, op);
    float* packed_b = ctx.scratch().take<float>(kGemmPackedRows * panels, op);
    return wide_product(pool, terms, c, sums, {packed_a, packed_b, ctx.scratch().take<double>(c.rows, op)});
  }
  NarrowTerm narrow[2];
  int64_t count = 0;
  if (c.rows <= kNarrow) {
    double total[kNarrow] = {};
    for (const auto& [a, b, sum_a] : terms) {
      narrow[count++] = {a, b, false};
      for (int64_t k = 0; sum_a && k < a.rows; k += Tile::kDepth) {
        add_column_sums(a.row(k), a.stride, std::min(Tile::kDepth, a.rows - k), a.cols, total);
      }
    }
    narrow_product(pool, narrow, count, StoreInto{c}, {});
    store_sums(total, sums);
  } else {
    for (const auto& [a, b, sum_a] : terms) narrow[count++] = {b, a, sum_a};
    narrow_product(pool, narrow, count, StoreTransposed{c}, sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
