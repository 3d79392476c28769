// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// A block of rows of the softmax of InfoNCE, one chunk of columns at a time: its scores, p = 2^(s - shift) with
// a running shift per row, and what p adds to A and d_z2 (infonce.cpp has the formulas). Chunks are kChunk
// columns wide and have rows kChunk apart.

#if defined(PWDICE_KERNELS_CPU_INFONCE_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_INFONCE_BLOCK_INL_H_
#undef PWDICE_KERNELS_CPU_INFONCE_BLOCK_INL_H_
#else
#define PWDICE_KERNELS_CPU_INFONCE_BLOCK_INL_H_
#endif

#include <cmath>
#include <utility>

#include "infonce_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

inline constexpr double kInfoNceLn2 = 0.6931471805599453, kInfoNceLog2e = 1.4426950408889634;

// -- scores ----------------------------------------------------------------------------------------------

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

// out[r][j] = s of the block's rows and columns [col, col + cols), rows kChunk apart.
inline void score_columns(const InfoNceShape& s, const InfoNceBuffers& b, const QueryBlock& block,
                          int64_t col, int64_t cols, float* out) {
  constexpr int64_t kStride = InfoNceShape::kChunk;
  const FloatTag d;
  for (int64_t j = 0; j < cols; j += Tile::kCols) {
    const float* const panel = b.z2_scores + (col + j) * s.d;
    for (int64_t r = 0; r < block.count; r += Tile::kRows) {
      float* const to = out + r * kStride + j;
      tile_sums<Tile::kRows, Along::Columns>(s.d, block.strips + r * s.d, Tile::kRows, panel,
                                             [&](int row, int64_t c, Floats sum)
                                                 HWY_ATTR { hn::Store(sum, d, to + row * kStride + c); });
    }
  }
  const int64_t real = std::min(cols, s.n - col);
  for (int64_t r = 0; r < block.count && real < cols; ++r)
    std::fill(out + r * kStride + real, out + r * kStride + cols, -INFINITY);
}

// The largest of s in each lane.
HWY_INLINE Floats lane_max(const float* s, int64_t n) {
  const FloatTag d;
  Floats top0 = hn::Set(d, -INFINITY), top1 = top0;
  for (int64_t j = 0; j < n; j += Tile::kCols) {
    top0 = hn::Max(top0, hn::Load(d, s + j));
    top1 = hn::Max(top1, hn::Load(d, s + j + kLanes));
  }
  return hn::Max(top0, top1);
}

// s becomes 2^(s - shift); returns the sum.
HWY_INLINE double exp_in_place(float* s, int64_t n, float shift) {
  const FloatTag d;
  const Floats m = hn::Set(d, shift);
  Floats sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  for (int64_t j = 0; j < n; j += Tile::kCols) {
    const Floats e0 = exp2_nonpositive(d, hn::Sub(hn::Load(d, s + j), m));
    const Floats e1 = exp2_nonpositive(d, hn::Sub(hn::Load(d, s + j + kLanes), m));
    hn::Store(e0, d, s + j);
    hn::Store(e1, d, s + j + kLanes);
    sum0 = hn::Add(sum0, e0);
    sum1 = hn::Add(sum1, e1);
  }
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1))));
}

// -- softmax ---------------------------------------------------------------------------------------------

// A row of the softmax, its own column apart: with it a pair that is told apart well would leave nothing of
// the others, in 1 - p_ii as in the loss.
struct RowSoftmax {
  // A row is shifted anew when a score exceeds its shift by so many bits: 2^32 is far from the largest float,
  // and seldom does a chunk have to be corrected.
  static constexpr float kSlack = 32.f;

  float shift = -INFINITY;  // about the largest of the other columns
  float own = 0.f;
  double others = 0;  // sum of 2^(s - shift) over them

  void raise(float largest) {
    others *= std::exp2(static_cast<double>(shift) - static_cast<double>(largest));
    shift = largest;
  }
  float top() const { return std::max(shift, own); }
  double scale() const {
    return shift == -INFINITY ? 1.0 : std::exp2(static_cast<double>(shift) - static_cast<double>(top()));
  }
  double own_excess() const { return static_cast<double>(own) - static_cast<double>(top()); }
  double total() const { return others * scale() + std::exp2(own_excess()); }  // relative to top()
  double lse() const { return static_cast<double>(top()) * kInfoNceLn2 + std::log(total()); }
  double loss() const {  // lse - s_ii; the excess is zero here, or NaN for a score that is not finite
    if (own >= shift) return std::log1p(others * scale() + own_excess());
    return lse() - static_cast<double>(own) * kInfoNceLn2;
  }
  // p_ij = weight() 2^(s_ij - shift); one next to nothing is none: subnormals would slow the products down
  double weight() const {
    const double weight = scale() / total();
    return weight < 1e-30 ? 0 : weight;
  }
};

// 2^(s - shift) of the chunk of columns [col, col + cols) to `p`, shift and sum of each row so far to `rows`.
inline void softmax_chunk(const InfoNceShape& s, const InfoNceBuffers& b, const QueryBlock& block,
                          int64_t col, int64_t cols, float* p, RowSoftmax* rows) {
  const FloatTag d;
  score_columns(s, b, block, col, cols, p);
  for (int64_t r = 0; r < block.count; ++r, p += InfoNceShape::kChunk) {
    RowSoftmax& row = rows[r];
    const int64_t own = block.rows.begin + r - col;
    if (own >= 0 && own < cols) row.own = std::exchange(p[own], -INFINITY);
    const Floats top = lane_max(p, cols);
    if (!hn::AllFalse(d, hn::Gt(top, hn::Set(d, row.shift + RowSoftmax::kSlack)))) {
      row.raise(hn::GetLane(hn::MaxOfLanes(d, top)));
    }
    row.others +=
        exp_in_place(p, cols, row.shift == -INFINITY ? 0.f : row.shift);  // -inf: its own column alone
  }
}

// Brings a chunk that was shifted by `shift` to what its rows are shifted by in the end.
inline void correct_shift(const float* shift, int64_t count, int64_t cols, const RowSoftmax* rows, float* p) {
  const FloatTag d;
  for (int64_t r = 0; r < count; ++r, p += InfoNceShape::kChunk) {
    if (!(shift[r] < rows[r].shift)) continue;
    const Floats scale = hn::Set(d, std::exp2(shift[r] - rows[r].shift));
    for (int64_t j = 0; j < cols; j += kLanes) hn::Store(hn::Mul(hn::Load(d, p + j), scale), d, p + j);
  }
}

// -- gradients of one block ------------------------------------------------------------------------------

// A += P z2 and d_z2 += P^T (weighted u), P without its diagonal, for the chunk of columns [col, col + cols)
// in `p`. `first`: the section's d_z2 has no value yet.
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

// What the diagonal of G adds: G_ii is minus the sum `others` of the row, by the same weight.
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
