// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// A block of rows of the softmax of InfoNCE, one chunk of columns at a time: its scores, p = 2^(s - shift) with
// a running shift per row, and what p adds to A and d_z2 (infonce.cpp has the formulas). Chunks are kChunk
// columns wide and have rows kChunk apart. Cost and bytes: infonce.cpp; numerics: there, at RowSoftmax and BlockSoftmax.

#if defined(PWDICE_KERNELS_CPU_INFONCE_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_INFONCE_BLOCK_INL_H_
#undef PWDICE_KERNELS_CPU_INFONCE_BLOCK_INL_H_
#else
#define PWDICE_KERNELS_CPU_INFONCE_BLOCK_INL_H_
#endif

#include <cmath>
#include <limits>
#include <utility>

#include "infonce_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

inline constexpr double kInfoNceLn2 = 0.6931471805599453, kInfoNceLog2e = 1.4426950408889634;

// One block of rows: u in strips for the scores, and scaled in panels for d_z2.
struct QueryBlock {
  static constexpr int64_t kRows = InfoNceShape::kMaxRows;
  static constexpr int64_t kMaxPanels = (kInfoNceMaxWidth + Tile::kCols - 1) / Tile::kCols;

  Range rows;
  int64_t count;
  float strips[kRows * kInfoNceMaxWidth];
  HWY_ALIGN float scaled[kMaxPanels * kRows * Tile::kCols];  // (panels, count, kCols)
  HWY_ALIGN float a[kMaxPanels * kRows * Tile::kCols];       // (panels, kRows, kCols): sum_j p_ij z2_j

  void load(const InfoNceShape& s, const float* u, Range range) {
    rows = range;
    count = range.end - range.begin;
    for (int64_t r = 0; r < chunk_count(count, Tile::kRows) * Tile::kRows; ++r) {
      float* strip = strips + r / Tile::kRows * Tile::kRows * s.d + r % Tile::kRows;
      const float* from = u + (range.begin + std::min(r, count - 1)) * s.padded();
      for (int64_t k = 0; k < s.d; ++k) strip[k * Tile::kRows] = from[k];
    }
  }
  // scaled_r = weight_r u_r
  void scale(const InfoNceShape& s, const float* u, const float* weight) {
    float* to = scaled;
    for (int64_t panel = 0; panel < s.panels; ++panel) {
      for (int64_t r = 0; r < count; ++r, to += Tile::kCols) {
        const float* from = u + (rows.begin + r) * s.padded() + panel * Tile::kCols;
        for (int64_t c = 0; c < Tile::kCols; ++c) to[c] = from[c] * weight[r];
      }
    }
  }
};

// -- softmax ---------------------------------------------------------------------------------------------

// A row of the softmax, its own column apart: with it a pair that is told apart well would leave nothing of
// the others, in 1 - p_ii as in the loss.
class RowSoftmax {
 public:
  // `shift` is at most 32 below the largest of the other columns, -inf without any; `others` sums 2^(s - shift) over them.
  RowSoftmax(double shift, double own, double others)
      : shift_(shift),
        own_(own),
        top_(std::max(shift, own)),
        own_excess_(own - top_),
        scale_(shift == -INFINITY ? 1.0 : power(shift - top_)),
        others_(others * scale_),
        total_(others_ + power(own_excess_)) {}

  double lse() const { return top_ * kInfoNceLn2 + std::log(total_); }
  double loss() const {  // lse - s_ii; the excess is zero here, or NaN for a score that is not finite
    return own_ >= shift_ ? std::log1p(others_ + own_excess_) : lse() - own_ * kInfoNceLn2;
  }
  // p_ij = weight() 2^(s_ij - shift); one next to nothing is none
  double weight() const {
    const double weight = scale_ / total_;
    return weight < 1e-30 ? 0 : weight;
  }

 private:
  // 2^x, which takes its time; of a row's two one is 2^0.
  static double power(double x) { return x == 0 ? 1.0 : std::exp2(x); }

  double shift_, own_, top_, own_excess_, scale_;
  double others_, total_;  // in units of 2^top
};

// The rows of a block while their columns pass by, tile after tile: p = 2^(s - shift) while s is still in L1, and its
// sums. The base of a row is shift + kHeadroom: every s - base is negative, one bit to look at, until a row outgrows its
// base, and that is seldom. p below 2^-94 is zero.
struct BlockSoftmax {
  static constexpr int64_t kRows = InfoNceShape::kMaxRows;
  static constexpr int kHeadroom = 32;

  float base[kRows], own[kRows];
  double others[kRows];                     // sums of p over the chunks so far
  HWY_ALIGN float sums[2][kRows * kLanes];  // over this chunk, by lane: before a tile and after it

  BlockSoftmax() {
    std::fill_n(base, kRows, std::numeric_limits<float>::lowest());
    std::fill_n(own, kRows, 0.f);
    std::fill_n(others, kRows, 0.0);
  }
  RowSoftmax row(int64_t r) const {
    const bool alone = base[r] == std::numeric_limits<float>::lowest();
    return {alone ? -INFINITY : static_cast<double>(base[r]) - kHeadroom, static_cast<double>(own[r]),
            others[r]};
  }
};

// Where p comes from: bases that rise with the scores, or given shifts in their place.
enum class Bases { Rising, Fixed };

// p of one tile and the sums after it; whether every difference was negative.
template <Bases kBases>
HWY_INLINE bool exp_tile(const float* s, const float* base, const float* sums, float* p, float* sums_after) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  constexpr int kScale = kBases == Bases::Rising ? BlockSoftmax::kHeadroom : 0;
  Floats signs = hn::Set(d, -1.f);
  for (int64_t r = 0; r < Tile::kRows; ++r, p += InfoNceShape::kChunk) {
    const Floats shift = hn::Set(d, base[r]);
    const Floats x0 = hn::Sub(hn::Load(d, s + r * Tile::kCols), shift);
    const Floats x1 = hn::Sub(hn::Load(d, s + r * Tile::kCols + kLanes), shift);
    const Floats e0 = exp2_nonpositive<kScale>(d, x0), e1 = exp2_nonpositive<kScale>(d, x1);
    signs = hn::And(signs, hn::And(x0, x1));
    hn::Store(e0, d, p);
    hn::Store(e1, d, p + kLanes);
    hn::Store(hn::Add(hn::Load(d, sums + r * kLanes), hn::Add(e0, e1)), d, sums_after + r * kLanes);
  }
  return hn::AllTrue(di, hn::Lt(hn::BitCast(di, signs), hn::Zero(di)));
}

// Raises the bases that the rows [first, first + kRows) have outgrown by the tile `s`, and brings to them what was made
// by the old ones: the sums, and the first `done` columns of the chunk in p.
inline HWY_NOINLINE void raise_bases(const float* s, int64_t first, float* p, int64_t done, float* sums,
                                     BlockSoftmax& rows) {
  const FloatTag d;
  for (int64_t r = 0; r < Tile::kRows; ++r, p += InfoNceShape::kChunk, sums += kLanes) {
    const Floats both = hn::Max(hn::Load(d, s + r * Tile::kCols), hn::Load(d, s + r * Tile::kCols + kLanes));
    const float largest = hn::GetLane(hn::MaxOfLanes(d, both));
    float& base = rows.base[first + r];
    if (!(largest > base)) continue;
    const float old = std::exchange(base, largest + BlockSoftmax::kHeadroom);
    const double factor = std::exp2(static_cast<double>(old) - static_cast<double>(base));
    const Floats scale = hn::Set(d, static_cast<float>(factor));
    rows.others[first + r] *= factor;
    hn::Store(hn::Mul(hn::Load(d, sums), scale), d, sums);
    for (int64_t j = 0; j < done; j += kLanes) hn::Store(hn::Mul(hn::Load(d, p + j), scale), d, p + j);
  }
}

// Takes out of the tile of scores that begins at (row, col) the rows' own columns and those past n.
inline void leave_out(int64_t row, int64_t col, int64_t n, float* s, float* own) {
  for (int64_t r = 0; r < Tile::kRows; ++r, s += Tile::kCols) {
    const int64_t at = row + r - col;
    if (at >= 0 && at < Tile::kCols) own[r] = std::exchange(s[at], -INFINITY);
    if (n - col < Tile::kCols) std::fill(s + (n - col), s + Tile::kCols, -INFINITY);
  }
}

// p of the chunk of columns [col, col + cols), the rows' own columns apart, and its sums. With rising bases columns of
// earlier chunks may be left with a smaller one.
template <Bases kBases>
void softmax_chunk(const InfoNceShape& s, const InfoNceBuffers& b, const QueryBlock& block, int64_t col,
                   int64_t cols, float* p, BlockSoftmax& rows) {
  const FloatTag d;
  HWY_ALIGN float tile[Tile::kRows * Tile::kCols];
  float *sums = rows.sums[0], *after = rows.sums[1];
  std::fill_n(sums, BlockSoftmax::kRows * kLanes, 0.f);
  for (int64_t j = 0; j < cols; j += Tile::kCols, std::swap(sums, after)) {
    const int64_t first = col + j, last = first + Tile::kCols;
    const bool whole = last <= s.n && (last <= block.rows.begin || first >= block.rows.end);
    for (int64_t r = 0; r < block.count; r += Tile::kRows) {
      float* const to = p + r * InfoNceShape::kChunk;
      tile_product<Tile::kRows, Along::Columns>(s.d, block.strips + r * s.d, Tile::kRows,
                                                b.z2_scores + first * s.d, tile, false);
      if (!whole) leave_out(block.rows.begin + r, first, s.n, tile, rows.own + r);
      const auto exp = [&]() HWY_ATTR {
        return exp_tile<kBases>(tile, rows.base + r, sums + r * kLanes, to + j, after + r * kLanes);
      };
      if (exp() || kBases == Bases::Fixed) continue;
      raise_bases(tile, r, to, j, sums + r * kLanes, rows);
      exp();
    }
  }
  for (int64_t r = 0; r < block.count; ++r) {
    rows.others[r] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums + r * kLanes))));
  }
}

// Brings a chunk that was made with `base` to the bases of its rows in the end.
inline void correct_bases(const float* base, int64_t count, int64_t cols, const BlockSoftmax& rows,
                          float* p) {
  const FloatTag d;
  for (int64_t r = 0; r < count; ++r, p += InfoNceShape::kChunk) {
    if (!(base[r] < rows.base[r])) continue;
    const Floats scale = hn::Set(d, std::exp2(base[r] - rows.base[r]));
    for (int64_t j = 0; j < cols; j += kLanes) hn::Store(hn::Mul(hn::Load(d, p + j), scale), d, p + j);
  }
}

// -- gradients of one block ------------------------------------------------------------------------------

// The diagonal of G within the chunk of columns `cols`: minus the sum of the other columns.
inline void set_diagonal(const QueryBlock& block, Range cols, const double* others, float* p) {
  for (int64_t r = 0; r < block.count; ++r) {
    const int64_t own = block.rows.begin + r;
    if (own < cols.begin || own >= cols.end) continue;
    p[r * InfoNceShape::kChunk + own - cols.begin] = static_cast<float>(-others[r]);
  }
}

// A += P z2 and d_z2 += P^T (weighted u) for the chunk of columns [col, col + cols) in `p`. `first`: d_z2 has no value
// yet.
inline void add_gradients(const InfoNceShape& s, const InfoNceBuffers& b, QueryBlock& block, const float* p,
                          int64_t col, int64_t cols, float* d_z2, bool first) {
  constexpr int64_t kStride = InfoNceShape::kChunk;
  for (int64_t panel = 0; panel < s.panels; ++panel) {
    const int64_t at = (panel * s.cols + col) * Tile::kCols;
    for (int64_t r = 0; r < block.count; r += Tile::kRows) {
      tile_product<Tile::kRows, Along::Rows>(cols, p + r * kStride, kStride, b.z2 + at,
                                             block.a + (panel * QueryBlock::kRows + r) * Tile::kCols,
                                             col > 0);
    }
    tile_rows<Along::Columns>(cols, block.count, p, kStride, block.scaled + panel * block.count * Tile::kCols,
                              d_z2 + at, !first);
  }
}

// What the diagonal of G adds where it is known last.
inline void add_diagonal(const InfoNceShape& s, const InfoNceBuffers& b, QueryBlock& block,
                         const double* others, float* d_z2) {
  for (int64_t panel = 0; panel < s.panels; ++panel) {
    for (int64_t r = 0; r < block.count; ++r) {
      const int64_t at = (panel * s.cols + block.rows.begin + r) * Tile::kCols;
      const auto g = static_cast<float>(-others[r]);
      float* const a = block.a + (panel * QueryBlock::kRows + r) * Tile::kCols;
      const float* const u = block.scaled + (panel * block.count + r) * Tile::kCols;
      for (int64_t c = 0; c < Tile::kCols; ++c) {
        a[c] += g * b.z2[at + c];
        d_z2[at + c] += g * u[c];
      }
    }
  }
}

// A_i = weight_i a_i, to its place in d_v1.
inline void store_queries(const InfoNceShape& s, const QueryBlock& block, const float* weight,
                          Mat<float> d_v1) {
  for (int64_t panel = 0; panel < s.panels; ++panel) {
    const int64_t k0 = panel * Tile::kCols, width = std::min(Tile::kCols, s.d - k0);
    for (int64_t r = 0; r < block.count; ++r) {
      const float* a = block.a + (panel * QueryBlock::kRows + r) * Tile::kCols;
      float* to = d_v1.row(block.rows.begin + r) + k0;
      for (int64_t c = 0; c < width; ++c) to[c] = a[c] * weight[r];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
