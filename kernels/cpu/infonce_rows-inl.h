// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// What InfoNCE does once per row, O(n d^2): before the scores u = z1 M inv_tau and the packed z2, after them
// the way back through M and the normalisation.
//
//   z = v / |v|     u_i = z1_i M inv_tau log2(e), so that scores come in units of log 2
//   d_z1 = A M^T inv_tau     d_M = z1^T A inv_tau     d_v = (d_z - z <z, d_z>) / |v|
//
// Numerics norms, <z, d_z> and d_M are summed in double, the products of a few rows in float.
// Cost     6 n d^2 flop; reads v1 and v2 twice, writes u, both layouts of z2 and d_v once, and adds up d_z2 of every
//          place that SliceQueue has left: about 64 n d bytes with two threads, folds of places apart (12 n d each).
//
// A row whose norm is zero (or not representable as 1/|v|) has z = 0 and no gradient.

#if defined(PWDICE_KERNELS_CPU_INFONCE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_INFONCE_ROWS_INL_H_
#undef PWDICE_KERNELS_CPU_INFONCE_ROWS_INL_H_
#else
#define PWDICE_KERNELS_CPU_INFONCE_ROWS_INL_H_
#endif

#include <cmath>

#include "../infonce.h"
#include "gemm-inl.h"
#include "infonce_metric-inl.h"
#include "pair_tile-inl.h"
#include "slice_queue.h"
#include "subnormals.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

// Sizes that follow from (n, d) alone.
struct InfoNceShape {
  // Rows of a block: the more, the longer the sums of d_z2 run in registers; fewer for a large n, so that the
  // kept chunks stay in the cache. Measured on Zen 4 (AVX-512) at n = 4096: 28 rows take 5 % more than 56, 70 half a
  // percent less.
  static constexpr int64_t kMaxRows = 2 * PairBlock::kRows + Tile::kRows, kLowRows = PairBlock::kRows;
  static constexpr int64_t kMaxTall = 16384;
  // Columns of a chunk: what a row costs beside its vectors (its sum) is paid once a chunk. Measured
  // at n = 4096 on Zen 4 (AVX-512): 6 vectors 17.6 ms, 12 17.3, 18 17.1, 24 and 30 the same; on Zen 3 (AVX2) no
  // difference between 12 and 32.
  static constexpr int64_t kChunk = 18 * kLanes;
  static constexpr int64_t kSumsBytes = int64_t{16} << 20, kMaxSections = 8, kMaxSpares = 4;
  static constexpr int64_t kRowChunks = 16, kMinRowChunk = 256;
  static_assert(kChunk % Tile::kCols == 0);

  int64_t n, d;
  int64_t panels;            // of Tile::kCols columns that hold one embedding
  int64_t cols;              // n rounded up to whole panels
  int64_t rows;              // of one block at most
  int64_t sections, spares;  // of rows with a d_z2 of their own (SliceQueue)
  int64_t row_chunk;

  InfoNceShape(int64_t count, int64_t width) : n(count), d(width) {
    panels = chunk_count(d, Tile::kCols);
    cols = chunk_count(n, Tile::kCols) * Tile::kCols;
    rows = n <= kMaxTall ? kMaxRows : kLowRows;
    const int64_t fit = kSumsBytes / (cols * padded() * static_cast<int64_t>(sizeof(float)));
    sections = fit < 4 ? 2 : fit < 8 ? 4 : kMaxSections;
    spares = std::clamp<int64_t>(fit - sections, 0, kMaxSpares);
    sections = std::min(blocks().count, sections);
    row_chunk = std::max(kMinRowChunk, chunk_count(n, kRowChunks));
  }
  // As many pairs of which `fit` sums of d_z2 fit into kSumsBytes.
  static int64_t most_pairs(int64_t width, int64_t fit) {
    const int64_t row_bytes =
        chunk_count(width, Tile::kCols) * Tile::kCols * static_cast<int64_t>(sizeof(float));
    return kSumsBytes / (fit * row_bytes) / Tile::kCols * Tile::kCols;
  }
  int64_t padded() const { return panels * Tile::kCols; }
  int64_t chunks() const { return chunk_count(cols, kChunk); }
  int64_t chunk_floats() const { return rows * kChunk + chunk_count(rows, 16) * 16; }  // p and the bases
  int64_t kept_floats() const { return chunks() * chunk_floats(); }                    // of one block
  int64_t row_chunks() const { return chunk_count(n, row_chunk); }
  RowParts blocks() const { return {{0, n}, rows}; }
  Range chunk_cols(int64_t chunk) const { return chunk_range(cols, kChunk, chunk); }
  int64_t d_z2_places() const { return sections + spares; }
  int64_t d_z2_floats() const { return cols * padded(); }  // of one place
  RowParts section_blocks(int64_t section) const {
    RowParts parts({0, n}, Tile::kRows);
    parts.count = sections;
    return {parts[section], rows};
  }
  int64_t max_blocks() const {  // of a section
    return chunk_count(chunk_count(chunk_count(n, Tile::kRows), sections), rows / Tile::kRows);
  }
  SliceQueue queue(int64_t helped) const {
    return {sections, helped, [this](int64_t section) { return section_blocks(section).count; }};
  }
};

// Scratch of one call.
struct InfoNceBuffers {
  float *factor, *m;            // (d, d)
  float *m_panels, *mt_panels;  // (panels, d, kCols): M and M^T as right operands
  float *inv1, *inv2;           // (n): 1/|v|, 0 for a zero row, 1 without normalisation
  float* u;                     // (n, padded)
  float* z2_scores;             // (cols / kCols, d, kCols): z2 as the columns of the scores
  float* z2;                    // (panels, cols, kCols): z2 as a right operand
  float* d_z2;                  // (places, panels, cols, kCols)
  double *d_m_parts, *d_m;      // (row_chunks, d, d), (d, d)
  double* loss;                 // (blocks), or (sections, max_blocks)
};

template <class TakeFloats, class TakeDoubles>
InfoNceBuffers lay_out(const InfoNceShape& s, bool gradients, const TakeFloats& floats,
                       const TakeDoubles& doubles) {
  InfoNceBuffers b{};
  b.factor = floats(s.d * s.d);
  b.m = floats(s.d * s.d);
  b.m_panels = floats(s.d * s.padded());
  b.mt_panels = floats(s.d * s.padded());
  b.inv1 = floats(s.n);
  b.inv2 = floats(s.n);
  b.u = floats(s.n * s.padded());
  b.z2_scores = floats(s.cols * s.d);
  b.loss = doubles(std::max(s.blocks().count, s.sections * s.max_blocks()));
  if (!gradients) return b;
  b.z2 = floats(s.cols * s.padded());
  b.d_z2 = floats(s.d_z2_places() * s.d_z2_floats());
  b.d_m_parts = doubles(s.row_chunks() * s.d * s.d);
  b.d_m = doubles(s.d * s.d);
  return b;
}

// -- before the scores -----------------------------------------------------------------------------------

inline float inverse_norm(const float* v, int64_t d) {
  const double inv = 1 / std::sqrt(dot_double(v, v, d));
  return inv < 3e38 || std::isnan(inv) ? static_cast<float>(inv) : 0.f;
}

// z = v / |v|; returns 1/|v|, or 1 when z is v.
HWY_INLINE float normalised(const InfoNce& in, const float* v, int64_t d, float* z) {
  const float inv = in.normalise ? inverse_norm(v, d) : 1.f;
  for (int64_t k = 0; k < d; ++k) z[k] = v[k] * inv;
  return inv;
}

// u of up to Tile::kRows rows.
HWY_INLINE void query_tile(const InfoNce& in, const InfoNceShape& s, const InfoNceBuffers& b, Range rows) {
  float z1[Tile::kRows * kInfoNceMaxWidth];
  HWY_ALIGN float part[Tile::kRows * Tile::kCols];
  const int64_t count = rows.end - rows.begin;
  for (int64_t r = 0; r < count; ++r) {
    b.inv1[rows.begin + r] = normalised(in, in.v1.row(rows.begin + r), s.d, z1 + r * s.d);
  }
  const float scale = static_cast<float>(static_cast<double>(in.inv_tau) * 1.4426950408889634);
  for (int64_t p = 0; p < s.panels; ++p) {
    tile_rows<Along::Rows>(count, s.d, z1, s.d, b.m_panels + p * s.d * Tile::kCols, part, false);
    for (int64_t r = 0; r < count; ++r) {
      float* to = b.u + (rows.begin + r) * s.padded() + p * Tile::kCols;
      for (int64_t c = 0; c < Tile::kCols; ++c) to[c] = part[r * Tile::kCols + c] * scale;
    }
  }
}

// z2 of one panel of Tile::kCols columns, in both layouts.
HWY_INLINE void key_panel(const InfoNce& in, const InfoNceShape& s, const InfoNceBuffers& b, int64_t first) {
  float rows[Tile::kCols * kInfoNceMaxWidth];
  const int64_t count = std::min(s.n - first, Tile::kCols);
  for (int64_t c = 0; c < count; ++c) {
    b.inv2[first + c] = normalised(in, in.v2.row(first + c), s.d, rows + c * s.d);
  }
  std::fill(rows + count * s.d, rows + Tile::kCols * s.d, 0.f);
  pack_panel_transposed(rows, s.d, s.d, Tile::kCols, b.z2_scores + first * s.d);
  if (b.z2 == nullptr) return;
  for (int64_t p = 0; p < s.panels; ++p) {
    const int64_t k0 = p * Tile::kCols;
    pack_panels(rows + k0, s.d, Tile::kCols, std::min(Tile::kCols, s.d - k0),
                b.z2 + (p * s.cols + first) * Tile::kCols);
  }
}

inline void prepare(ThreadPool& pool, const InfoNce& in, const InfoNceShape& s, const InfoNceBuffers& b) {
  score_metric(in.metric, in.w0, b.factor, b.m);
  for (int64_t p = 0; p < s.panels; ++p) {
    const int64_t k0 = p * Tile::kCols, width = std::min(Tile::kCols, s.d - k0);
    pack_panels(b.m + k0, s.d, s.d, width, b.m_panels + k0 * s.d);
    pack_panel_transposed(b.m + k0 * s.d, s.d, s.d, width, b.mt_panels + k0 * s.d);
  }
  constexpr int64_t kStep = 384;
  static_assert(kStep % Tile::kCols == 0);
  const int64_t chunks = chunk_count(s.cols, kStep);
  pool.parallel_for(2 * chunks, [&](int64_t chunk, int) HWY_ATTR {
    const Range range = chunk_range(s.cols, kStep, chunk % chunks);
    if (chunk < chunks) {
      const int64_t end = std::min(range.end, s.n);
      for (int64_t i = range.begin; i < end; i += Tile::kRows) {
        query_tile(in, s, b, {i, std::min<int64_t>(i + Tile::kRows, end)});
      }
    } else {
      for (int64_t j = range.begin; j < range.end; j += Tile::kCols) key_panel(in, s, b, j);
    }
  });
}

// -- after the scores ------------------------------------------------------------------------------------

// d_v = (d_z - z <z, d_z>) inv with z = v inv; d_v may be d_z.
HWY_INLINE void through_norm(const float* v, float inv, bool normalise, const float* d_z, int64_t d,
                             float* d_v) {
  if (!normalise) {
    std::copy_n(d_z, d, d_v);
    return;
  }
  const auto along = static_cast<float>(dot_double(v, d_z, d) * static_cast<double>(inv));
  for (int64_t k = 0; k < d; ++k) d_v[k] = (d_z[k] - v[k] * inv * along) * inv;
}

// d_v1 from A (which stands in d_v1) and this chunk's part of z1^T A, a few rows at a time.
struct QueryGradient {
  const InfoNce& in;
  const InfoNceShape& s;
  const InfoNceBuffers& b;
  Mat<float> d_v1;

  static constexpr int64_t kRows = PairBlock::kRows;

  void rows(Range rows, double* d_m) const {
    const int64_t count = rows.end - rows.begin;
    float z1[kRows * kInfoNceMaxWidth];
    HWY_ALIGN float a[kRows * (kInfoNceMaxWidth + Tile::kCols)];  // (panels, count, kCols)
    HWY_ALIGN float part[kInfoNceMaxWidth * Tile::kCols];
    for (int64_t r = 0; r < count; ++r) {
      const float* v = in.v1.row(rows.begin + r);
      const float inv = b.inv1[rows.begin + r];
      for (int64_t k = 0; k < s.d; ++k) z1[r * s.d + k] = v[k] * inv;
    }
    pack_panels(d_v1.row(rows.begin), d_v1.stride, count, s.d, a);
    for (int64_t p = 0; p < s.panels; ++p) {
      const int64_t k0 = p * Tile::kCols, width = std::min(Tile::kCols, s.d - k0);
      tile_rows<Along::Columns>(s.d, count, z1, s.d, a + k0 * count, part, false);
      for (int64_t r = 0; r < s.d; ++r) {
        double* to = d_m + r * s.d + k0;
        for (int64_t c = 0; c < width; ++c) to[c] += static_cast<double>(part[r * Tile::kCols + c]);
      }
    }
    back(rows, part);
  }

  // d_z1 = A M^T inv_tau, then through the norm.
  void back(Range rows, float* part) const {
    static_assert(kRows <= kInfoNceMaxWidth);
    const int64_t count = rows.end - rows.begin;
    float d_z[kRows * kInfoNceMaxWidth];
    for (int64_t p = 0; p < s.panels; ++p) {
      const int64_t k0 = p * Tile::kCols, width = std::min(Tile::kCols, s.d - k0);
      tile_rows<Along::Rows>(count, s.d, d_v1.row(rows.begin), d_v1.stride, b.mt_panels + k0 * s.d, part,
                             false);
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t c = 0; c < width; ++c) d_z[r * s.d + k0 + c] = part[r * Tile::kCols + c] * in.inv_tau;
      }
    }
    for (int64_t r = 0; r < count; ++r) {
      const int64_t i = rows.begin + r;
      through_norm(in.v1.row(i), b.inv1[i], in.normalise, d_z + r * s.d, s.d, d_v1.row(i));
    }
  }
};

// Adds d_z2 of one place to that of another.
inline void fold_keys(const InfoNceShape& s, const InfoNceBuffers& b, int64_t to, int64_t from) {
  const NoSubnormals mode;  // as for the sums of a block: it must not matter which are added here
  const FloatTag d;
  float* const sum = b.d_z2 + to * s.d_z2_floats();
  const float* const more = b.d_z2 + from * s.d_z2_floats();
  for (int64_t i = 0; i < s.d_z2_floats(); i += kLanes)
    hn::Store(hn::Add(hn::Load(d, sum + i), hn::Load(d, more + i)), d, sum + i);
}

// d_v2 of one row: what is left to be added in order, then through the norm.
HWY_INLINE void key_gradient(const InfoNce& in, const InfoNceShape& s, const InfoNceBuffers& b,
                             const SliceQueue& queue, int64_t i, float* d_v2) {
  const FloatTag d;
  HWY_ALIGN float d_z[kInfoNceMaxWidth + Tile::kCols];
  for (int64_t k = 0; k < s.d; k += kLanes) {
    float* const at = b.d_z2 + (k / Tile::kCols * s.cols + i) * Tile::kCols + k % Tile::kCols;
    queue.for_each_addition([&](int64_t to, int64_t from) HWY_ATTR {
      float* const sum = at + to * s.d_z2_floats();
      hn::Store(hn::Add(hn::Load(d, sum), hn::Load(d, at + from * s.d_z2_floats())), d, sum);
    });
    hn::Store(hn::Load(d, at), d, d_z + k);
  }
  through_norm(in.v2.row(i), b.inv2[i], in.normalise, d_z, s.d, d_v2);
}

inline void finish_gradients(ThreadPool& pool, const InfoNce& in, const InfoNceShape& s,
                             const InfoNceBuffers& b, const SliceQueue& queue, Mat<float> d_v1,
                             Mat<float> d_v2, Mat<float> d_w0) {
  const QueryGradient query{in, s, b, d_v1};
  const int64_t dd = s.d * s.d;
  pool.parallel_for(s.row_chunks(), [&](int64_t chunk, int) HWY_ATTR {
    const NoSubnormals mode;  // as for the sums of a block: it must not matter which are added here
    const Range range = chunk_range(s.n, s.row_chunk, chunk);
    double* const d_m = b.d_m_parts + chunk * dd;
    std::fill_n(d_m, dd, 0.0);
    for (int64_t i = range.begin; i < range.end; i += PairBlock::kRows) {
      query.rows({i, std::min(i + PairBlock::kRows, range.end)}, d_m);
    }
    for (int64_t i = range.begin; i < range.end; ++i) key_gradient(in, s, b, queue, i, d_v2.row(i));
  });
  std::fill_n(b.d_m, dd, 0.0);
  for (int64_t chunk = 0; chunk < s.row_chunks(); ++chunk) {
    for (int64_t k = 0; k < dd; ++k) b.d_m[k] += b.d_m_parts[chunk * dd + k];
  }
  for (int64_t k = 0; k < dd; ++k) b.d_m[k] *= static_cast<double>(in.inv_tau);
  score_metric_backward(in.metric, in.w0, b.factor, b.d_m, d_w0);
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
