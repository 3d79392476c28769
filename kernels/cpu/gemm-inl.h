// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Matrix products of the CPU backend, for any Highway target. Include in a file that uses foreach_target.
//
//   rows_product   C = A B        A (m, k) read in place, B (k, n) in panels (pack_panels)
//
// What becomes of C is the caller's: a sink is called as sink(row, col, v, count) with the first `count`
// lanes of v holding C(row, col...), once per element and in fixed order, so that bias, activation and
// derivatives cost no pass of their own.
//
// Work         C is cut into chunks of whole tiles by shape alone, and a chunk sums over all of k: no partial
//              sums between threads, same bits for any thread count.
// Numerics     float FMAs over at most 256 values of k in order, blocks added in order.

#if defined(PWDICE_KERNELS_CPU_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_GEMM_INL_H_
#undef PWDICE_KERNELS_CPU_GEMM_INL_H_
#else
#define PWDICE_KERNELS_CPU_GEMM_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "gemm_tile-inl.h"
#include "parallel.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

inline int64_t panel_count(int64_t cols) { return chunk_count(cols, Tile::kCols); }
inline int64_t strip_count(int64_t rows) { return chunk_count(rows, Tile::kRows); }

// A (k, n) right operand in panels.
struct Panels {
  const float* data = nullptr;
  int64_t depth = 0, cols = 0;

  const float* at(int64_t panel, int64_t k) const { return data + (panel * depth + k) * Tile::kCols; }
};

// A left operand whose rows run along k. multiply() adds a block of rows times one block of a panel to
// `part`.
struct RowsInPlace {
  Mat<const float> a;  // (m, k)

  HWY_INLINE void multiply(Range rows, int64_t k, int64_t depth, const float* b, float* part,
                           bool add) const {
    tile_rows<Along::Rows>(rows.end - rows.begin, depth, a.row(rows.begin) + k, a.stride, b, part, add);
  }
  // The same for the first panel of a chunk, while the rows come from afar.
  HWY_INLINE void multiply_first(Range rows, int64_t k, int64_t depth, const float* b, float* part,
                                 bool add) const {
    for (int64_t row = rows.begin; row < rows.end; row += Tile::kRows, part += Tile::kRows * Tile::kCols) {
      const int64_t next = row + Tile::kRows, end = std::min(rows.end, next + Tile::kRows);
      for (int64_t r = next; r < end; ++r) prefetch(a.row(r) + k, depth);
      multiply({row, std::min(rows.end, next)}, k, depth, b, part, add);
    }
  }
};

// -- chunks ----------------------------------------------------------------------------------------------

// How the tiles of an (m, n) result are dealt out. A chunk is worth about 65 thousand FMAs at least, and
// there are at least 32 of them where the shape allows, so that two threads finish together.
struct Plan {
  int64_t rows = 0, row_step = Tile::kBlockRows, panels = 0, panel_step = 1, panel_chunks = 1, chunks = 0;

  Plan(int64_t m, int64_t n, int64_t k) : rows(m), panels(panel_count(n)) {
    const int64_t want = std::clamp<int64_t>(m * n * k / 65536, 1, 32);
    while (row_step > Tile::kRows && chunk_count(m, row_step) * panels < want) row_step -= Tile::kRows;
    const int64_t row_chunks = std::max<int64_t>(chunk_count(m, row_step), 1);
    panel_chunks = std::clamp<int64_t>(chunk_count(want, row_chunks), 1, std::max<int64_t>(panels, 1));
    panel_step = std::max<int64_t>(chunk_count(panels, panel_chunks), 1);
    panel_chunks = chunk_count(panels, panel_step);
    chunks = chunk_count(m, row_step) * panel_chunks;
  }
  Range row_range(int64_t chunk) const { return chunk_range(rows, row_step, chunk / panel_chunks); }
  Range panel_range(int64_t chunk) const { return chunk_range(panels, panel_step, chunk % panel_chunks); }
};

template <class Sink>
HWY_INLINE void deliver(const float* part, Range rows, int64_t col, int64_t cols, const Sink& sink) {
  const FloatTag d;
  if (col + Tile::kCols <= cols) {  // whole vectors alone: the sink's tests for a part of one vanish
    for (int64_t row = rows.begin; row < rows.end; ++row, part += Tile::kCols) {
      for (int64_t v = 0; v < Tile::kCols; v += kLanes) sink(row, col + v, hn::Load(d, part + v), kLanes);
    }
    return;
  }
  for (int64_t row = rows.begin; row < rows.end; ++row, part += Tile::kCols) {
    for (int64_t v = 0; v < Tile::kCols && col + v < cols; v += kLanes) {
      sink(row, col + v, hn::Load(d, part + v), std::min(kLanes, cols - col - v));
    }
  }
}

template <class Sink>
HWY_INLINE void multiply_chunk(const RowsInPlace& a, const Panels& b, Range rows, Range panels,
                               const Sink& sink) {
  HWY_ALIGN float part[Tile::kBlockRows * Tile::kCols];
  if (b.depth == 0) std::fill(std::begin(part), std::end(part), 0.f);
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    if constexpr (requires { sink.expect(0, 0); }) {
      for (int64_t row = rows.begin; row < rows.end; ++row) sink.expect(row, panel * Tile::kCols);
    }
    for (int64_t k = 0; k < b.depth; k += Tile::kDepth) {
      const int64_t depth = std::min(Tile::kDepth, b.depth - k);
      panel == panels.begin ? a.multiply_first(rows, k, depth, b.at(panel, k), part, k > 0)
                            : a.multiply(rows, k, depth, b.at(panel, k), part, k > 0);
    }
    deliver(part, rows, panel * Tile::kCols, b.cols, sink);
  }
}

// -- C = A B ---------------------------------------------------------------------------------------------

enum class Operand { Plain, Transposed };

// B = w (k, n) or w^T with w (n, k); `to` has gemm_panels_bytes(k, n).
inline Panels pack_panels(ThreadPool& pool, Mat<const float> w, Operand as, float* to) {
  const bool plain = as == Operand::Plain;
  const int64_t depth = plain ? w.rows : w.cols, cols = plain ? w.cols : w.rows, panels = panel_count(cols);
  const int64_t step = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, depth * Tile::kCols));
  pool.parallel_for(chunk_count(panels, step), [&](int64_t chunk, int) HWY_ATTR {
    const Range range = chunk_range(panels, step, chunk);
    for (int64_t p = range.begin; p < range.end; ++p) {
      const int64_t col = p * Tile::kCols, count = std::min(Tile::kCols, cols - col);
      float* panel = to + col * depth;
      plain ? pack_panels(w.data + col, w.stride, depth, count, panel)
            : pack_panel_transposed(w.row(col), w.stride, depth, count, panel);
    }
  });
  return {to, depth, cols};
}

template <class Sink>
void rows_product(ThreadPool& pool, Mat<const float> a, const Panels& b, const Sink& sink) {
  const Plan plan(a.rows, b.cols, b.depth);
  pool.parallel_for(plan.chunks, [&](int64_t chunk, int) HWY_ATTR {
    multiply_chunk(RowsInPlace{a}, b, plan.row_range(chunk), plan.panel_range(chunk), sink);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
