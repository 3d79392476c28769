// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Tiles of s_ij = row_i + col_j - k dist(x_i, y_j), made while they are needed and never stored. What becomes
// of a tile (stored, exponentiated and summed, squared) is the consumer's business.
//
// The columns y are packed once in panels of kCols columns [d][kCols]; a block of rows is packed in strips
// [d][kRows], so a register tile reads both operands from consecutive memory. Columns past the end carry
// `padding` as their col_j (-inf makes them vanish from any logsumexp).
//
// |x - y|^2 has two forms. |x|^2 + |y|^2 - 2 <x, y> costs one FMA per element and cancels when x and y are
// far from the origin but close to each other; sum (x - y)^2 costs two instructions and never cancels. Both
// work on states minus a centre of the columns (their mean but for far ones), which the distance does not see and
// their rounding only where a state is far from it. A block of rows takes the first form when its rounding error in s,
// at most about 2^-23 k (|x|^2 + |y|^2), is below kDotTolerance; embeddings on the unit sphere do while
// k = beta / (eps log 2) is below 40. A consumer that wants the distance itself asks for the direct form on unshifted
// states.
//
// Cost     2 n m d flop: d FMAs a pair, the direct forms twice the instructions. Reads m d floats per block.

#if defined(PWDICE_KERNELS_CPU_PAIR_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_PAIR_TILE_INL_H_
#undef PWDICE_KERNELS_CPU_PAIR_TILE_INL_H_
#else
#define PWDICE_KERNELS_CPU_PAIR_TILE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../pairwise_cost.h"
#include "gemm_tile-inl.h"
#include "pair_plan.h"
#include "parallel.h"
#include "vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

// Rows of a block and columns of a chunk: a tile of s, the panels that it came from and the strips stay in L1. On
// Zen 5 (48 KiB) 224 columns, 53 KiB with AVX-512, took 3 % more with one thread, and with two up to half as much again.
struct PairBlock {
  static constexpr int64_t kRows = 2 * Tile::kRows * (Tile::kRows <= 6 ? 2 : 1);  // 24, 28
  static constexpr int64_t kCols = kPairCols;
  static_assert(kRows <= kPairMaxRows && kCols % Tile::kCols == 0);
};

// How the elements of x and y are folded into one number, and what that number says about the distance.
enum class Form { Dot, Square, Root, Manhattan, ExpManhattan, Cosine, Indicator };

template <Form kForm>
HWY_INLINE Floats fold(Floats x, Floats y, Floats sum) {
  if constexpr (kForm == Form::Dot || kForm == Form::Cosine) {
    return hn::MulAdd(x, y, sum);
  } else if constexpr (kForm == Form::Square || kForm == Form::Root) {
    const Floats t = hn::Sub(x, y);
    return hn::MulAdd(t, t, sum);
  } else {
    const Floats t = hn::Add(sum, hn::Abs(hn::Sub(x, y)));
    return kForm == Form::Indicator ? hn::IfThenElse(hn::Eq(x, y), sum, t) : t;  // an infinity equals itself
  }
}

template <Form kForm>
HWY_INLINE Floats distance_of(Floats folded, Floats x_norm, Floats y_norm) {
  const FloatTag d;
  if constexpr (kForm == Form::Root) return hn::Sqrt(folded);
  if constexpr (kForm == Form::ExpManhattan) return hn::Sub(exp(d, folded), hn::Set(d, 1.f));
  if constexpr (kForm == Form::Cosine) {
    const Floats norms = math::at_least(d, 1e-6f, hn::Mul(x_norm, y_norm));
    return hn::Sub(hn::Set(d, 1.f), hn::Div(folded, norms));
  }
  if constexpr (kForm == Form::Indicator) {  // NaN stays NaN
    return hn::IfThenElse(hn::Gt(folded, hn::Zero(d)), hn::Set(d, 1.f), folded);
  }
  return folded;
}

// One register tile: out[r][c] = row_r + col_c + scale dist(x_r, y_c).
struct TileInput {
  const float *strip, *row, *row_norm;  // [depth][kRows], (kRows), (kRows)
  const float *panel, *col, *col_norm;  // [depth][kCols], (kCols), (kCols)
  int64_t depth;
  float scale;
};

template <Form kForm>
HWY_NOINLINE void score_tile(const TileInput& in, float* HWY_RESTRICT out, int64_t stride) {
  constexpr int kRows = Tile::kRows;
  const FloatTag d;
  Floats sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = hn::Zero(d);
  const float *HWY_RESTRICT x = in.strip, *HWY_RESTRICT y = in.panel;
  for (int64_t k = 0; k < in.depth; ++k) {
    const Floats y0 = hn::LoadU(d, y + k * Tile::kCols), y1 = hn::LoadU(d, y + k * Tile::kCols + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Floats x_r = hn::Set(d, x[k * kRows + r]);
      sum[r][0] = fold<kForm>(x_r, y0, sum[r][0]);
      sum[r][1] = fold<kForm>(x_r, y1, sum[r][1]);
    }
  }
  const Floats scale = hn::Set(d, in.scale);
  const Floats col0 = hn::LoadU(d, in.col), col1 = hn::LoadU(d, in.col + kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    Floats x_norm = hn::Zero(d), y_norm0 = x_norm, y_norm1 = x_norm;
    if constexpr (kForm == Form::Cosine) {
      x_norm = hn::Set(d, in.row_norm[r]);
      y_norm0 = hn::LoadU(d, in.col_norm);
      y_norm1 = hn::LoadU(d, in.col_norm + kLanes);
    }
    const Floats row = hn::Set(d, in.row[r]);
    const Floats dist0 = distance_of<kForm>(sum[r][0], x_norm, y_norm0);
    const Floats dist1 = distance_of<kForm>(sum[r][1], x_norm, y_norm1);
    hn::StoreU(hn::MulAdd(scale, dist0, hn::Add(row, col0)), d, out + r * stride);
    hn::StoreU(hn::MulAdd(scale, dist1, hn::Add(row, col1)), d, out + r * stride + kLanes);
  }
}

// The column side of a sweep: y packed in panels, and what depends on j alone.
struct PairColumns {
  Distance distance;
  float k;
  int64_t depth, count, padded;
  float* panels;         // (padded / Tile::kCols, depth, Tile::kCols), minus centre
  float *col, *dot_col;  // (padded): col_j; col_j - k |y_j|^2
  float* norm;           // (padded): |y_j| for the cosine, |y_j|^2 otherwise
  float* centre;         // (depth): of y for the squared distance (fill_centre), zero otherwise
  float max_norm;        // of the columns; infinite when only the direct form will do
};

enum class Squares { ByError, Direct };

// One block of at most PairBlock::kRows rows.
struct PairRows {
  float* strips;  // (PairBlock::kRows / Tile::kRows, depth, Tile::kRows)
  int64_t count;
  Form form;
  HWY_ALIGN float row[PairBlock::kRows], norm[PairBlock::kRows];
};

// Largest error of a score that the cancelling form may cause: the relative error of exp(s). Between neighbours s is
// near zero and plain float code has it to 2^-24, so that little may be lost here.
inline constexpr double kDotTolerance = 1e-5;

// Whether a point takes part; without weights all do.
inline bool takes_part(Vec<const float> weight, int64_t j) { return weight.size == 0 || weight[j] != 0.f; }

// Rows of y that take part, evenly spread over them.
struct PointSample {
  static constexpr int64_t kMost = 15;
  int64_t rows[kMost], count = 0, points = 0;

  PointSample(int64_t n, Vec<const float> weight) {
    for (int64_t j = 0; j < n; ++j) points += takes_part(weight, j);
    const int64_t wanted = std::min(points, kMost);
    for (int64_t j = 0, seen = 0; count < wanted; ++j) {
      if (!takes_part(weight, j)) continue;
      if (seen++ == count * points / wanted) rows[count++] = j;
    }
  }
};

// Around the median of a sample of coordinate k, far beyond what its quartiles let expect.
inline void usual_limits(Mat<const float> y, const PointSample& sample, int64_t k, float& low, float& high) {
  constexpr float kFar = 16;
  float v[PointSample::kMost] = {};
  int64_t count = 0;
  for (int64_t i = 0; i < sample.count; ++i) {
    const float value = y(sample.rows[i], k);
    if (!std::isfinite(value)) continue;
    int64_t at = count++;
    for (; at > 0 && v[at - 1] > value; --at) v[at] = v[at - 1];
    v[at] = value;
  }
  const float median = v[count / 2], far = count == 0 ? 0 : kFar * (v[3 * count / 4] - v[count / 4]);
  low = median - far, high = median + far;
}

// The mean of the points that take part, each coordinate within its limits: a far point must not cost the others their
// digits, nor one that is not finite spoil them.
inline void fill_centre(Mat<const float> y, Vec<const float> weight, float* centre) {
  const PointSample sample(y.rows, weight);
  std::fill_n(centre, y.cols, 0.f);
  for (int64_t k0 = 0; k0 < y.cols && sample.points > 0; k0 += 64) {
    double sum[64] = {};
    float low[64], high[64];
    const int64_t count = std::min<int64_t>(64, y.cols - k0);
    for (int64_t k = 0; k < count; ++k) usual_limits(y, sample, k0 + k, low[k], high[k]);
    for (int64_t j = 0; j < y.rows; ++j) {
      if (!takes_part(weight, j)) continue;
      const float* const row = y.row(j) + k0;
      for (int64_t k = 0; k < count; ++k) {
        const float up = row[k] > low[k] ? row[k] : low[k];  // NaN is at the limit
        sum[k] += static_cast<double>(up < high[k] ? up : high[k]);
      }
    }
    for (int64_t k = 0; k < count; ++k)
      centre[k0 + k] = static_cast<float>(sum[k] / static_cast<double>(sample.points));
  }
}

// Subtracts the centre from a packed panel and adds up the squares of its columns.
inline void centre_panel(float* panel, const float* centre, int64_t depth, double* norms) {
  for (int64_t k = 0; k < depth; ++k, panel += Tile::kCols) {
    for (int64_t c = 0; c < Tile::kCols; ++c) {
      panel[c] -= centre[k];
      norms[c] += static_cast<double>(panel[c]) * static_cast<double>(panel[c]);
    }
  }
}

// col(j) gives col_j of each real column. A column of weight 0 is like one past the end, whatever its point and constant
// are: its constant is the padding, and its point the centre. Memory: pair_columns_bytes().
template <class Col>
PairColumns pack_columns(Context& ctx, const char* op, Distance distance, float k, Mat<const float> y,
                         float padding, const Col& col, Vec<const float> weight = {},
                         Squares squares = Squares::ByError) {
  Scratch& scratch = ctx.scratch();
  PairColumns c{};
  c.distance = distance, c.k = k, c.depth = y.cols, c.count = y.rows;
  c.padded = chunk_count(y.rows, Tile::kCols) * Tile::kCols;
  c.panels = scratch.take<float>(c.padded * c.depth, op);
  c.col = scratch.take<float>(c.padded, op);
  c.dot_col = scratch.take<float>(c.padded, op);
  c.norm = scratch.take<float>(c.padded, op);
  c.centre = scratch.take<float>(c.depth, op);
  if (distance == Distance::SquaredEuclidean && squares == Squares::ByError) {
    fill_centre(y, weight, c.centre);
  } else {
    std::fill_n(c.centre, c.depth, 0.f);
  }
  const int64_t per_chunk = std::max<int64_t>(1, 256 / Tile::kCols), panels = c.padded / Tile::kCols;
  ctx.pool().parallel_for(chunk_count(panels, per_chunk), [&](int64_t chunk, int) HWY_ATTR {
    const Range range = chunk_range(panels, per_chunk, chunk);
    for (int64_t j0 = range.begin * Tile::kCols; j0 < range.end * Tile::kCols; j0 += Tile::kCols) {
      const int64_t count = std::min(Tile::kCols, c.count - j0);
      double norms[Tile::kCols] = {};
      pack_panel_transposed(y.row(j0), y.stride, c.depth, count, c.panels + j0 * c.depth);
      centre_panel(c.panels + j0 * c.depth, c.centre, c.depth, norms);
      for (int64_t i = 0; i < Tile::kCols; ++i) {
        const bool is_real = i < count && takes_part(weight, j0 + i);
        if (i < count && !is_real) {
          for (int64_t d = 0; d < c.depth; ++d) c.panels[(j0 * c.depth) + d * Tile::kCols + i] = 0.f;
        }
        const double norm = is_real ? norms[i] : 0.0;
        const float constant = is_real ? col(j0 + i) : padding;
        c.col[j0 + i] = constant;
        c.dot_col[j0 + i] = static_cast<float>(static_cast<double>(constant) - static_cast<double>(k) * norm);
        c.norm[j0 + i] = static_cast<float>(distance == Distance::Cosine ? std::sqrt(norm) : norm);
      }
    }
  });
  c.max_norm = squares == Squares::Direct ? INFINITY : 0.f;
  for (int64_t j = 0; j < c.count; ++j) c.max_norm = std::max(c.max_norm, c.norm[j]);
  return c;
}

inline Form form_of(const PairColumns& c, double max_row_norm) {
  switch (c.distance) {
    case Distance::SquaredEuclidean: {
      const double error =
          std::abs(static_cast<double>(c.k)) * (max_row_norm + static_cast<double>(c.max_norm)) * 0x1p-23;
      return error <= kDotTolerance ? Form::Dot : Form::Square;
    }
    case Distance::Euclidean:
      return Form::Root;
    case Distance::Manhattan:
      return Form::Manhattan;
    case Distance::ExpManhattan:
      return Form::ExpManhattan;
    case Distance::Cosine:
      return Form::Cosine;
    case Distance::Indicator:
      return Form::Indicator;
  }
  return Form::Square;
}

// The first columns of a strip, by vectors of kLanes rows of x; the lanes past the strip's are overwritten by the next
// column. Returns how many.
HWY_INLINE int64_t pack_whole_columns(const PairColumns& c, const float* x, int64_t stride, float* strip) {
  const FloatTag d;
  HWY_ALIGN float part[kTransposed * kLanes];
  int64_t k = 0;
  for (; k + kTransposed < c.depth; k += kTransposed) {
    transpose(x + k, stride, part, kLanes);
    for (int64_t i = 0; i < kTransposed; ++i, strip += Tile::kRows) {
      hn::StoreU(hn::Sub(hn::Load(d, part + i * kLanes), hn::Set(d, c.centre[k + i])), d, strip);
    }
  }
  return k;
}

// A strip of Tile::kRows rows, the first `count` of them real; norms (kRows) receives their squares.
HWY_INLINE void pack_row_strip(const PairColumns& c, Mat<const float> x, int64_t row, int64_t count,
                               float* strip, double* norms) {
  const float* from[Tile::kRows];
  for (int64_t r = 0; r < Tile::kRows; ++r) from[r] = x.row(row + std::min(r, count - 1));
  int64_t k = 0;
  if constexpr (Tile::kRows <= kLanes) {
    if (row + kLanes <= x.rows) k = pack_whole_columns(c, x.row(row), x.stride, strip);
  }
  for (; k < c.depth; ++k) {
    for (int64_t r = 0; r < Tile::kRows; ++r) strip[k * Tile::kRows + r] = from[r][k] - c.centre[k];
  }
  for (k = 0; k < c.depth; ++k, strip += Tile::kRows) {
    for (int64_t r = 0; r < Tile::kRows; ++r) {
      norms[r] += static_cast<double>(strip[r]) * static_cast<double>(strip[r]);
    }
  }
}

// Packs rows [range) of x; row(i) gives row_i. Rows past the end of a strip repeat the last one.
template <class Row>
HWY_INLINE void pack_rows(const PairColumns& c, Mat<const float> x, Range range, const Row& row,
                          PairRows& to) {
  to.count = range.end - range.begin;
  double norms[PairBlock::kRows] = {}, max_norm = 0;
  for (int64_t r = 0; r < to.count; r += Tile::kRows) {
    pack_row_strip(c, x, range.begin + r, std::min<int64_t>(Tile::kRows, to.count - r),
                   to.strips + r * c.depth, norms + r);
  }
  for (int64_t r = 0; r < to.count; ++r) max_norm = std::max(max_norm, norms[r]);
  to.form = form_of(c, max_norm);
  for (int64_t r = 0; r < PairBlock::kRows; ++r) {
    const double base = r < to.count ? static_cast<double>(row(range.begin + r)) : 0.0;
    to.row[r] = static_cast<float>(to.form == Form::Dot ? base - static_cast<double>(c.k) * norms[r] : base);
    to.norm[r] = static_cast<float>(to.form == Form::Cosine ? std::sqrt(norms[r]) : norms[r]);
  }
}

template <Form kForm>
void score_panels(const PairColumns& c, const PairRows& rows, int64_t col, int64_t cols, float* out,
                  int64_t stride) {
  TileInput in{};
  in.depth = c.depth;
  in.scale = kForm == Form::Dot ? 2.f * c.k : -c.k;
  const float* const constants = kForm == Form::Dot ? c.dot_col : c.col;
  for (int64_t j = 0; j < cols; j += Tile::kCols) {
    in.panel = c.panels + (col + j) * c.depth;
    in.col = constants + col + j;
    in.col_norm = c.norm + col + j;
    for (int64_t r = 0; r < rows.count; r += Tile::kRows) {
      in.strip = rows.strips + r * c.depth;
      in.row = rows.row + r;
      in.row_norm = rows.norm + r;
      score_tile<kForm>(in, out + r * stride + j, stride);
    }
  }
}

// out[r][j] = s of row r of the block and column col + j; col and cols are multiples of Tile::kCols.
inline void score_block(const PairColumns& c, const PairRows& rows, int64_t col, int64_t cols, float* out,
                        int64_t stride) {
  switch (rows.form) {
    case Form::Dot:
      return score_panels<Form::Dot>(c, rows, col, cols, out, stride);
    case Form::Square:
      return score_panels<Form::Square>(c, rows, col, cols, out, stride);
    case Form::Root:
      return score_panels<Form::Root>(c, rows, col, cols, out, stride);
    case Form::Manhattan:
      return score_panels<Form::Manhattan>(c, rows, col, cols, out, stride);
    case Form::ExpManhattan:
      return score_panels<Form::ExpManhattan>(c, rows, col, cols, out, stride);
    case Form::Cosine:
      return score_panels<Form::Cosine>(c, rows, col, cols, out, stride);
    case Form::Indicator:
      return score_panels<Form::Indicator>(c, rows, col, cols, out, stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
