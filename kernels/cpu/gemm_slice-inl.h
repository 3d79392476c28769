// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Sums over the rows of a batch, slice by slice, for any Highway target: the weight gradients of ops that
// take a block of rows through all their layers. Include in a file that uses foreach_target.
//
//   accumulate_columns    C (+)= A^T B      A (k, m), B (k, n) with k <= kPassRows; B may be in parts
//   SliceSums             the sums of every slice, and their total
//
// The rows are cut into slices by their number alone (row_slices), each adds its blocks of at most kPassRows in
// order, and the slices are added in an order of their own (SliceQueue): same bits for any thread count, and whoever
// computes a block.
//
// Measured on Zen 3 (AVX2, 96 rows, 256 x 256): 93 % of the FMA peak with A read in place at mlp_stride; 60 %
// at a stride of 256.

#if defined(PWDICE_KERNELS_CPU_GEMM_SLICE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_GEMM_SLICE_INL_H_
#undef PWDICE_KERNELS_CPU_GEMM_SLICE_INL_H_
#else
#define PWDICE_KERNELS_CPU_GEMM_SLICE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "../mlp.h"
#include "gemm_columns-inl.h"
#include "mlp.h"
#include "slice_queue.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

inline constexpr int64_t kPassRows = 2 * Tile::kBlockRows;

// Rows dealt out to threads where nothing is summed over them, in an even number of chunks, so that two threads
// finish together.
inline RowParts row_chunks(int64_t n) {
  RowParts parts({0, n}, Tile::kBlockRows);
  if (parts.tiles > 1) parts.count += parts.count % 2;
  return parts;
}

// With memory for the panels.
inline ToPack to_pack(Context& ctx, Mat<const float> w, Operand as, const char* op) {
  return {w, as,
          ctx.scratch().take<float>(packed_depth(w, as) * panel_count(packed_cols(w, as)) * Tile::kCols, op)};
}

template <class Sink>
HWY_INLINE void product_rows(Mat<const float> a, const Panels& b, Range rows, const Sink& sink) {
  multiply_chunk(a, b, rows, {0, panel_count(b.cols)}, sink);
}

// c is the place of the tile in C, at most kVectors wide; b as of tile_sums.
template <int kRows, int kVectors = Tile::kVectors>
HWY_INLINE void accumulate_tile(int64_t depth, const float* a, int64_t a_stride, const float* b,
                                int64_t b_stride, Mat<float> c, bool add) {
  constexpr int64_t kCols = kVectors * kLanes;
  const StoreInto sink{c, add};
  if (c.cols == kCols) {
    for (int r = 0; r < kRows; ++r) prefetch(c.row(r), kCols);
    const auto whole = [&](int row, int64_t col, Floats sum) HWY_ATTR { sink(row, col, sum, kLanes); };
    return tile_sums<kRows, Along::Columns, kVectors>(depth, a, a_stride, b, whole, b_stride);
  }
  const auto part = [&](int row, int64_t col, Floats sum) HWY_ATTR {
    if (col < c.cols) sink(row, col, sum, c.cols - col);
  };
  tile_sums<kRows, Along::Columns, kVectors>(depth, a, a_stride, b, part, b_stride);
}

// The same for c.rows < Tile::kRows.
template <int kRows, int kVectors = Tile::kVectors>
HWY_NOINLINE void accumulate_low_tile(int64_t depth, const float* a, int64_t a_stride, const float* b,
                                      int64_t b_stride, Mat<float> c, bool add) {
  accumulate_tile<kRows, kVectors>(depth, a, a_stride, b, b_stride, c, add);
}
template <int kRows = Tile::kRows - 1>
HWY_INLINE auto low_tile(int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return low_tile<kRows - 1>(rows);
  }
  return &accumulate_low_tile<kRows>;
}

// Columns [col, col + count) of C, all its rows. Less than four at the end would leave the FMA units waiting for
// their own results: these share with the tile before. Before each tile next(first row, end).
template <class Next>
HWY_INLINE void accumulate_panel(Mat<const float> a, const float* b, int64_t b_stride, Mat<float> c,
                                 int64_t col, int64_t count, bool add, const Next& next) {
  for (int64_t row = 0, end = 0; row < c.rows; row = end) {
    const int64_t left = c.rows - row;
    const bool whole = left == Tile::kRows || left >= Tile::kRows + 4;
    end = row + (whole ? Tile::kRows : left < Tile::kRows ? left : (left + 1) / 2);
    next(row, end);
    const Mat<float> to{c.row(row) + col, end - row, count, c.stride};
    whole ? accumulate_tile<Tile::kRows>(a.rows, a.data + row, a.stride, b, b_stride, to, add)
          : low_tile(to.rows)(a.rows, a.data + row, a.stride, b, b_stride, to, add);
  }
}

// The rows of C are those of a head, at most kHeadRows: a tile has all of them and as many columns as the registers
// hold, so that b, which may come from afar, is read in long runs. What is left of C's columns: from the one returned.
inline constexpr int64_t kHeadRows = Tile::kRows / 2;
template <int kRows = kHeadRows>
HWY_INLINE int64_t accumulate_head(Mat<const float> a, Mat<const float> b, Mat<float> c, bool add) {
  if constexpr (kRows > 1) {
    if (c.rows < kRows) return accumulate_head<kRows - 1>(a, b, c, add);
  }
  constexpr int kVectors = Tile::kRows * Tile::kVectors / kRows >= 8 ? 8 : 4;
  constexpr int64_t kCols = kVectors * kLanes;
  int64_t col = 0;
  for (; col + kCols <= c.cols; col += kCols) {
    accumulate_low_tile<kRows, kVectors>(a.rows, a.data, a.stride, b.data + col, b.stride,
                                         {c.data + col, c.rows, kCols, c.stride}, add);
  }
  return col;
}

// Whether columns of b are better read in place than packed for the tiles of `rows` columns of A. Packing costs as
// much as one tile; hidden layers (mlp_stride) lie in the cache as well as if they were packed.
inline bool reads_in_place(const Mat<const float>& b, int64_t rows) {
  constexpr int64_t kLine = 16, kFewColumns = 128;
  return rows <= kNarrow || (rows <= kFewColumns && b.stride % (2 * kLine) == kLine);
}

// A panel of B stays in L1 while the columns of A pass by; with each of their tiles a few rows of the next panel are
// asked for, which may come from afar.
using Stacked = std::initializer_list<Mat<const float>>;
inline HWY_NOINLINE void accumulate_columns(Mat<const float> a, Stacked b, Mat<float> c, bool add) {
  HWY_ALIGN float packed[kPassRows * Tile::kCols];
  const bool is_head = c.rows <= kHeadRows && b.size() == 1;
  for (int64_t col = is_head ? accumulate_head(a, *b.begin(), c, add) : 0; col < c.cols; col += Tile::kCols) {
    const int64_t count = std::min(Tile::kCols, c.cols - col);
    const int64_t left = std::min(Tile::kCols, c.cols - col - count);
    const auto next = [&](int64_t row, int64_t end) HWY_ATTR {
      for (const Mat<const float>& part : b) {
        const int64_t last = part.rows * end / c.rows;
        for (int64_t k = part.rows * row / c.rows; k < last; ++k) prefetch(part.row(k) + col + count, left);
      }
    };
    const Mat<const float>& first = *b.begin();
    if (b.size() == 1 && count == Tile::kCols && reads_in_place(first, c.rows)) {
      accumulate_panel(a, first.data + col, first.stride, c, col, count, add, next);
      continue;
    }
    float* to = packed;
    for (const Mat<const float>& part : b) {
      pack_panels(part.data + col, part.stride, part.rows, count, to);
      to += part.rows * Tile::kCols;
    }
    accumulate_panel(a, packed, Tile::kCols, c, col, count, add, next);
  }
}

// The gradients of several layers, summed slice by slice (SliceQueue): the first slice writes to its target. Not so
// with few inputs: there the sums are those of d_W^T, so that no lane of a vector is idle, and are turned around in the
// end.
class SliceSums {
 public:
  // Blocks have at most `most` rows; a slice without rows has one as well: the sums over no rows are zero.
  SliceSums(Context& ctx, int64_t n, int64_t most, std::span<const MlpGradient> targets, const char* op)
      : n_(n),
        most_(most),
        slices_(row_slices(n)),
        targets_(targets),
        queue_(slices_, kSliceSpares, [&](int64_t s) { return std::max<int64_t>(blocks(s).count, 1); }) {
    int64_t narrow = 0;
    for (size_t t = 0; t < targets.size(); ++t) {
      floats_ += targets[t].d_w.size(), rows_ += targets[t].d_w.rows;
      narrow += is_narrow(t) ? targets[t].d_w.size() : 0;
    }
    const int64_t places = slices_ + kSliceSpares;
    partials_ = ctx.scratch().take<float>((places - 1) * floats_ + narrow, op);
    totals_ = ctx.scratch().take<double>(places * rows_, op);
    std::fill_n(totals_, places * rows_, 0.0);
  }

  // block(place, rows, whether the place has sums to add to, thread) for all rows.
  template <class Block>
  void run(ThreadPool& pool, const Block& block) {
    const auto add_block = [&](int64_t slice, int64_t index, int64_t place, bool add, int thread) {
      const RowParts parts = blocks(slice);
      block(place, parts.count == 0 ? Range{0, 0} : parts[index], add, thread);
    };
    queue_.run(pool, add_block, [&](int64_t to, int64_t from) HWY_ATTR { fold(to, from); });
  }

  // d_W of target t (+)= d^T y; y in parts not with few inputs. Once for a block.
  HWY_INLINE void add(int64_t place, size_t t, Mat<const float> d, Stacked y, bool add) const {
    const Mat<float> c = d_w(place, t);
    is_narrow(t) ? accumulate_columns(*y.begin(), {d}, c, add) : accumulate_columns(d, y, c, add);
  }
  // The sums of a place, to become d_W of target t; (in, out) for few inputs.
  Mat<float> d_w(int64_t place, size_t t) const {
    const Mat<float>& target = targets_[t].d_w;
    if (place == 0 && !is_narrow(t)) return target;
    float* at = partials_;
    for (size_t before = 0; before < t; ++before) at += partials(before) * targets_[before].d_w.size();
    at += (place - (is_narrow(t) ? 0 : 1)) * target.size();
    return is_narrow(t) ? Mat<float>(at, target.cols, target.rows) : Mat<float>(at, target.rows, target.cols);
  }
  // Sums of columns, to become d_b of target t.
  double* d_b(int64_t place, size_t t) const {
    double* at = totals_ + place * rows_;
    for (size_t before = 0; before < t; ++before) at += targets_[before].d_w.rows;
    return at;
  }

  // What run() has left to be added, in one loop over the rows of all targets.
  void add_up(ThreadPool& pool) const {
    constexpr int64_t kStep = 16;
    pool.parallel_for(chunk_count(rows_, kStep), [&](int64_t chunk, int) HWY_ATTR {
      const Range range = chunk_range(rows_, kStep, chunk);
      int64_t first = 0;
      for (size_t t = 0; t < targets_.size(); first += targets_[t++].d_w.rows) {
        const int64_t end = std::min(range.end - first, targets_[t].d_w.rows);
        for (int64_t row = std::max<int64_t>(range.begin - first, 0); row < end; ++row) {
          if (is_narrow(t)) {
            add_column(t, row);
          } else {
            queue_.for_each_addition([&](int64_t to, int64_t from) HWY_ATTR { add_row(t, row, to, from); });
          }
          if (row < targets_[t].d_b.size) add_bias(t, row);
        }
      }
    });
  }

 private:
  RowParts blocks(int64_t slice) const { return {even_range(n_, slices_, slice), most_}; }
  bool is_narrow(size_t t) const { return targets_[t].d_w.cols <= kNarrow && targets_[t].d_w.rows > kNarrow; }

  int64_t partials(size_t t) const { return slices_ + kSliceSpares - (is_narrow(t) ? 0 : 1); }

  // Adds the sums of one place to those of another, and readies it for the next slice.
  HWY_INLINE void fold(int64_t to, int64_t from) const {
    for (size_t t = 0; t < targets_.size(); ++t) {
      for (int64_t row = 0; row < d_w(to, t).rows; ++row) add_row(t, row, to, from);
    }
    for (int64_t i = 0; i < rows_; ++i) {
      totals_[to * rows_ + i] += totals_[from * rows_ + i];
      totals_[from * rows_ + i] = 0;
    }
  }
  HWY_INLINE void add_row(size_t t, int64_t row, int64_t to_place, int64_t from_place) const {
    const Mat<float> sum = d_w(to_place, t);
    float* const to = sum.row(row);
    const float* const from = d_w(from_place, t).row(row);
    for (int64_t j = 0; j < sum.cols; j += kLanes) {
      store_part(hn::Add(load_part(to + j, sum.cols - j), load_part(from + j, sum.cols - j)), to + j,
                 sum.cols - j);
    }
  }
  HWY_INLINE void add_column(size_t t, int64_t col) const {
    const Mat<float>& target = targets_[t].d_w;
    for (int64_t j = 0; j < target.cols; ++j) {
      float* const at = d_w(0, t).row(j) + col;
      queue_.for_each_addition(
          [&](int64_t to, int64_t from) { at[to * target.size()] += at[from * target.size()]; });
      target(col, j) = at[0];
    }
  }
  void add_bias(size_t t, int64_t i) const {
    double* const at = d_b(0, t) + i;
    queue_.for_each_addition([&](int64_t to, int64_t from) { at[to * rows_] += at[from * rows_]; });
    targets_[t].d_b[i] = static_cast<float>(at[0]);
  }

  int64_t n_, most_, slices_, floats_ = 0, rows_ = 0;
  std::span<const MlpGradient> targets_;
  SliceQueue queue_;
  float* partials_ = nullptr;
  double* totals_ = nullptr;
};

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
