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
// A library's product would leave these as passes over memory, and first layers and heads, which memory bounds when
// they are products of their own, would not be next to free: here a block of rows goes through a whole network while it
// is in the cache (mlp.cpp). baseline/dnnl_sgemm of pwdice_bench times oneDNN's bare products beside these.
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
#include <span>

#include "gemm_tile-inl.h"
#include "parallel.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

inline int64_t panel_count(int64_t cols) { return chunk_count(cols, Tile::kCols); }
inline int64_t strip_count(int64_t rows) { return chunk_count(rows, Tile::kRows); }

// Rows in parts of at most `most`, a multiple of Tile::kRows: whole tiles, as even as can be.
struct RowParts {
  Range rows;
  int64_t tiles, count;

  RowParts(Range range, int64_t most) : rows(range), tiles(strip_count(range.end - range.begin)) {
    count = chunk_count(tiles, most / Tile::kRows);
  }
  Range operator[](int64_t part) const {
    const Range t = even_range(tiles, count, part);
    return {rows.begin + t.begin * Tile::kRows, std::min(rows.begin + t.end * Tile::kRows, rows.end)};
  }
};

// A (k, n) right operand in panels.
struct Panels {
  const float* data = nullptr;
  int64_t depth = 0, cols = 0;

  const float* at(int64_t panel, int64_t k) const { return data + (panel * depth + k) * Tile::kCols; }
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

// A sink that computes a tanh has so many constants that the compiler, with both in one function, keeps the
// sums of the tile in memory and the constants in registers. A heavy sink gets its tile from memory instead.
template <class Sink>
constexpr bool is_heavy() {
  if constexpr (requires { Sink::kHeavy; }) return Sink::kHeavy;
  return false;
}

// A sink with the matrices it touches, each of the shape of C.
template <bool kIsHeavy, class F, size_t kCount>
struct SinkOver {
  static constexpr bool kHeavy = kIsHeavy;
  F f;
  Mat<const float> touched[kCount];

  HWY_INLINE void operator()(int64_t row, int64_t col, Floats v, int64_t count) const {
    f(row, col, v, count);
  }
  HWY_INLINE void expect(int64_t row, int64_t col) const {
    for (const Mat<const float>& m : touched) prefetch(m.row(row) + col, Tile::kCols);
  }
};
template <bool kHeavy = false, class F, class... Matrix>
HWY_INLINE auto sink_over(F f, const Matrix&... touched) {
  return SinkOver<kHeavy, F, sizeof...(Matrix)>{f, {touched...}};
}

// -- C = A B ---------------------------------------------------------------------------------------------

enum class Operand { Plain, Transposed };

inline int64_t packed_depth(Mat<const float> w, Operand as) { return as == Operand::Plain ? w.rows : w.cols; }
inline int64_t packed_cols(Mat<const float> w, Operand as) { return as == Operand::Plain ? w.cols : w.rows; }

// Panel p of B = w (k, n), or of w^T with w (n, k).
HWY_INLINE void pack_panel(Mat<const float> w, Operand as, int64_t p, float* to) {
  const int64_t depth = packed_depth(w, as), col = p * Tile::kCols;
  const int64_t count = std::min(Tile::kCols, packed_cols(w, as) - col);
  float* panel = to + col * depth;
  as == Operand::Plain ? pack_panels(w.data + col, w.stride, depth, count, panel)
                       : pack_panel_transposed(w.row(col), w.stride, depth, count, panel);
}

// A right operand, and where its panels go.
struct ToPack {
  Mat<const float> w;
  Operand as;
  float* to;

  Panels panels() const { return {to, packed_depth(w, as), packed_cols(w, as)}; }
};

// Several right operands in one loop over their panels.
inline void pack_all(ThreadPool& pool, std::span<const ToPack> list) {
  int64_t total = 0;
  for (const ToPack& b : list) total += panel_count(packed_cols(b.w, b.as));
  pool.parallel_for(total, [&](int64_t panel, int) HWY_ATTR {
    const ToPack* b = list.data();
    for (int64_t count; panel >= (count = panel_count(packed_cols(b->w, b->as))); ++b) panel -= count;
    pack_panel(b->w, b->as, panel, b->to);
  });
}
// All of B; `to` has gemm_panels_bytes(k, n).
inline Panels pack_panels(ThreadPool& pool, Mat<const float> w, Operand as, float* to) {
  const ToPack b{w, as, to};
  pack_all(pool, {&b, 1});
  return b.panels();
}

// One tile, at most kRows high, to the sink. While it is computed the lines that the sink needs arrive in L1,
// and in the first panel of a chunk, when the rows of A come from afar, those of the next tile.
template <class Sink>
HWY_INLINE void multiply_tile(Mat<const float> a, const Panels& b, Range rows, int64_t panel, bool first,
                              const Sink& sink) {
  HWY_ALIGN float part[Tile::kRows * Tile::kCols];
  const int64_t count = rows.end - rows.begin, col = panel * Tile::kCols;
  if constexpr (requires { sink.expect(0, 0); }) {
    for (int64_t row = rows.begin; row < rows.end; ++row) sink.expect(row, col);
  }
  if (first) {
    const int64_t end = std::min(a.rows, rows.end + Tile::kRows);
    for (int64_t row = rows.end; row < end; ++row) prefetch(a.row(row), b.depth);
  }
  if (!is_heavy<Sink>() && count == Tile::kRows && b.depth <= Tile::kDepth && col + Tile::kCols <= b.cols) {
    tile_sums<Tile::kRows, Along::Rows>(b.depth, a.row(rows.begin), a.stride, b.at(panel, 0),
                                        [&](int row, int64_t c, Floats sum)
                                            HWY_ATTR { sink(rows.begin + row, col + c, sum, kLanes); });
    return;
  }
  const auto product = b.cols - col <= kLanes ? tile_rows<Along::Rows, 1> : tile_rows<Along::Rows>;
  for (int64_t k = 0; k < b.depth; k += Tile::kDepth) {
    const int64_t depth = std::min(Tile::kDepth, b.depth - k);
    product(count, depth, a.row(rows.begin) + k, a.stride, b.at(panel, k), part, k > 0);
  }
  deliver(part, rows, col, b.cols, sink);
}

// A panel stays in L1 while a block of rows passes it by. When k is small, memory is the limit and not the
// FMAs: then a block is one tile high, so that a handful of rows is written from end to end.
template <class Sink>
HWY_INLINE void multiply_chunk(Mat<const float> a, const Panels& b, Range rows, Range panels,
                               const Sink& sink) {
  constexpr int64_t kShallow = 32;  // all panels of a layer fit into L1
  const RowParts parts(rows, b.depth <= kShallow ? Tile::kRows : Tile::kBlockRows);
  for (int64_t part = 0; part < parts.count; ++part) {
    const Range block = parts[part];
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      for (int64_t row = block.begin; row < block.end; row += Tile::kRows) {
        multiply_tile(a, b, {row, std::min<int64_t>(row + Tile::kRows, block.end)}, panel,
                      panel == panels.begin, sink);
      }
    }
  }
}

template <class Sink>
void rows_product(ThreadPool& pool, Mat<const float> a, const Panels& b, const Sink& sink) {
  if (b.depth == 0) {
    HWY_ALIGN const float zeros[Tile::kCols] = {};
    for (int64_t row = 0; row < a.rows; ++row) {
      for (int64_t col = 0; col < b.cols; col += Tile::kCols)
        deliver(zeros, {row, row + 1}, col, b.cols, sink);
    }
    return;
  }
  const Plan plan(a.rows, b.cols, b.depth);
  pool.parallel_for(plan.chunks, [&](int64_t chunk, int) HWY_ATTR {
    multiply_chunk(a, b, plan.row_range(chunk), plan.panel_range(chunk), sink);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
