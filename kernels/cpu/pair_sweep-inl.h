// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The loop around pair_tile-inl.h: every owner of a PairGrid takes its rows block by block and its columns
// chunk by chunk, and hands each tile of s to a consumer that lives as long as the owner does:
//
//   consumer.begin(rows)                   a new block of rows
//   consumer.tile(tile, rows, col, cols)   s of its rows and columns [col, col + cols)
//   consumer.end(rows)                     the block has met all columns of the section
//   consumer.finish()                      the owner is done
//
// Rows of a tile are PairBlock::kCols apart.
//
// Numerics those of the tiles and of the consumer; potentials and rewards become one constant of a row or column in
//          double, rounded once.
// Cost     that of the tiles (pair_tile-inl.h) and of the consumer. A row of x, d floats, is read and packed once by each
//          owner that has it; the panels of an owner's columns, d floats each, are read once a block of rows.

#if defined(PWDICE_KERNELS_CPU_PAIR_SWEEP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_PAIR_SWEEP_INL_H_
#undef PWDICE_KERNELS_CPU_PAIR_SWEEP_INL_H_
#else
#define PWDICE_KERNELS_CPU_PAIR_SWEEP_INL_H_
#endif

#include "pair_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

inline constexpr double kLog2e = 1.4426950408889634, kLn2 = 0.6931471805599453;

// A potential and the reward as the constant of a row or column, in double until it is rounded once.
struct Potential {
  const float *value, *reward;
  double unit;  // 1/eps, or log2(e)/eps for tiles in units of log 2

  float operator()(int64_t i) const {
    return static_cast<float>((static_cast<double>(value[i]) + static_cast<double>(reward[i])) * unit);
  }
};

// row(i) gives row_i; consumer(owner) makes the consumer. Memory: one pair_block_bytes(d) a thread.
template <class Row, class MakeConsumer>
void sweep_pairs(Context& ctx, const char* op, const PairGrid& grid, const PairColumns& columns,
                 Mat<const float> x, const Row& row, const MakeConsumer& make_consumer) {
  const ScratchScope scope(ctx.scratch());
  const int64_t strip_size = PairBlock::kRows * columns.depth,
                tile_size = PairBlock::kRows * PairBlock::kCols;
  float* strips = ctx.scratch().take<float>(ctx.threads() * strip_size, op);
  float* tiles = ctx.scratch().take<float>(ctx.threads() * tile_size, op);
  ctx.pool().parallel_for(grid.owners(), [&](int64_t owner, int thread) HWY_ATTR {
    const Range section = grid.rows(owner), cols = grid.cols(owner);
    const int64_t cols_end = std::min(columns.padded, cols.begin + PairGrid::kSectionCols);
    float* const tile = tiles + thread * tile_size;
    PairRows block;
    block.strips = strips + thread * strip_size;
    auto consumer = make_consumer(owner);
    for (int64_t i = section.begin; i < section.end; i += PairBlock::kRows) {
      const Range rows{i, std::min(i + PairBlock::kRows, section.end)};
      pack_rows(columns, x, rows, row, block);
      consumer.begin(rows);
      for (int64_t j = cols.begin; j < cols_end; j += PairBlock::kCols) {
        const int64_t width = std::min(PairBlock::kCols, cols_end - j);
        score_block(columns, block, j, width, tile, PairBlock::kCols);
        consumer.tile(tile, block.count, j, width);
      }
      consumer.end(rows);
    }
    consumer.finish();
  });
}

// -- what consumers do with a tile -----------------------------------------------------------------------

inline double sum_lanes(const float* lanes) {
  double sum = 0;
  for (int64_t i = 0; i < kLanes; ++i) sum += static_cast<double>(lanes[i]);
  return sum;
}

HWY_NOINLINE inline float tile_max(const float* tile, int64_t rows, int64_t cols) {
  const FloatTag d;
  Floats max0 = hn::Set(d, -INFINITY), max1 = max0;
  for (int64_t r = 0; r < rows; ++r) {
    const float* s = tile + r * PairBlock::kCols;
    for (int64_t c = 0; c < cols; c += Tile::kCols) {
      max0 = hn::Max(max0, hn::Load(d, s + c));
      max1 = hn::Max(max1, hn::Load(d, s + c + kLanes));
    }
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(max0, max1)));
}

// col_sums[c] += the lanes of a column pair.
HWY_INLINE void add_to(double* sums, Floats v0, Floats v1) {
  const FloatTag d;
  HWY_ALIGN float lanes[Tile::kCols];
  hn::Store(v0, d, lanes);
  hn::Store(v1, d, lanes + kLanes);
  for (int64_t c = 0; c < Tile::kCols; ++c) sums[c] += static_cast<double>(lanes[c]);
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
