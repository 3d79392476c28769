// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// A block of rows back through a head and the ReLU layer below it, where all rows of the head's gradient point the same
// way. For any Highway target; include in a file that uses foreach_target.
//
//   y = max(x W^T + b, 0), x >= 0 of a ReLU layer too        x (k, n), W (h, n), y (k, h), W_head (m, h), d_pre (k, m)
//   d_pre_i = g_i u               with one output; with several where a row knows one of them, or two that go together:
//                                 the Bellman term sees l0(s) - l1(s), and its d_pre is g (1, -1, 0)
//   d_W_head = u (sum_i g_i y_i)^T
//   d_b_r    = w_r sum_{i: y_ir > 0} g_i                                  w = W_head^T u
//   d_W_r    = w_r sum_{i: y_ir > 0} g_i x_i
//   d_x_i    = 1[x_i > 0] g_i sum_{r: y_ir > 0} w_r W_r
//
// The last two, nearly all of what a backward pass through square layers computes, are sums of selected rows: half the
// time of the products d_W = d^T x and d_x = d W with d_ir = g_i w_r 1[y_ir > 0], or less.
//
// Numerics  Float sums over the rows of a block or over units, as those of the products. g_i x_i and w_r W_r are rounded
//           before they meet the other factor. Weights, d_pre, x or y that are not finite are left to the products,
//           so NaN and infinities show as they do there.

#if defined(PWDICE_KERNELS_CPU_RELU_HEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_RELU_HEAD_INL_H_
#undef PWDICE_KERNELS_CPU_RELU_HEAD_INL_H_
#else
#define PWDICE_KERNELS_CPU_RELU_HEAD_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "gemm_slice-inl.h"
#include "linear-inl.h"
#include "selected_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

// The lanes that a mask selects, lowest bit first.
template <class M>
HWY_INLINE uint32_t bits_of(M mask) {
  static_assert(kLanes <= 16);
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(FloatTag(), mask, bytes);
  return bytes[0] | uint32_t{bytes[1]} << 8;
}

// 0, or NaN where a value is not finite; whole vectors.
HWY_INLINE float zero_if_finite(const float* v, int64_t count) {
  const FloatTag d;
  Floats sum = hn::Zero(d);
  for (int64_t i = 0; i < count; i += kLanes) sum = hn::MulAdd(hn::LoadU(d, v + i), hn::Zero(d), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

class ReluHead {
 public:
  // Whether a network ends with two ReLU layers, of widths that make whole strips, and a head, with finite weights, and
  // has rows enough to make up for the sums of those of W.
  static bool suits(std::span<const MlpLayer> layers, int64_t rows) {
    if (layers.size() < 3 || rows < kLeastRows) return false;
    const MlpLayer &head = layers.back(), &relu = layers[layers.size() - 2];
    const auto whole = [](int64_t width) { return width % SelectedTile::kCols == 0; };
    return relu.act == Activation::Relu && layers[layers.size() - 3].act == Activation::Relu &&
           head.w.rows <= kFewOutputs && relu.w.rows <= kMostUnits && whole(relu.w.rows) &&
           whole(relu.w.cols) && relu.w.cols > kNarrow && is_finite(head.w) && is_finite(relu.w);
  }

  // One pass over the outputs y of the ReLU layer. False: rows of d_pre point in different directions, something is not
  // finite, or there are too few rows.
  bool read(Mat<const float> d_pre, Mat<const float> y, Mat<const float> x) {
    if (d_pre.rows < kLeastRows || !find_direction(d_pre) || !is_finite(x)) return false;
    float finite = 0;  // or NaN
    for (int64_t col = 0; col < y.cols; col += SelectedTile::kCols) finite += read_strip(y, col);
    return finite == 0;
  }

  // d_b is added to, d_W where `add` says so; d_x takes the place of x.
  struct Layers {
    Mat<const float> w_head, w;
    Mat<float> d_w_head, d_w, x;
    double* d_b;
    bool add;
  };
  void write(int64_t rows, const Layers& to) {
    std::fill_n(w_, to.w.rows, 0.f);
    for (int64_t j = 0; j < to.w_head.rows; ++j)
      add_output(u_[j], to.w_head.row(j), to.d_w_head.row(j), to.w.rows, to.add);
    for (int64_t r = 0; r < to.w.rows; ++r) to.d_b[r] += static_cast<double>(w_[r] * sum_g_[r]);
    const FloatTag d;
    const StoreInto d_w{to.d_w, to.add};
    selected_sums({by_unit_, to.w.rows}, to.x.slice_rows(0, rows), g_,
                  [&](int64_t r, int64_t col, Floats v, int64_t count)
                      HWY_ATTR { d_w(r, col, hn::Mul(v, hn::Set(d, w_[r])), count); });
    const TimesSlope<Activation::Relu> d_x{to.x, to.x};
    selected_sums({by_row_, rows}, to.w, w_, [&](int64_t i, int64_t col, Floats v, int64_t count) HWY_ATTR {
      d_x(i, col, hn::Mul(v, hn::Set(d, g_[i])), count);
    });
  }

 private:
  static constexpr int64_t kLeastRows = 16, kMostRows = kPassRows, kWord = SelectedTile::kDepth;
  static constexpr int64_t kMostUnits = 512;  // 22 KiB of the stack

  static bool is_finite(Mat<const float> m) {
    float finite = 0;  // or NaN
    for (int64_t r = 0; r < m.rows; ++r) finite += zero_if_finite(m.row(r), m.cols);
    return finite == 0;
  }

  // g and u with d_pre_i = g_i u to the bit: u has a 1 where the first row that is not zero has its largest value.
  bool find_direction(Mat<const float> d_pre) {
    const int64_t m = d_pre.cols;
    const auto is_zero = [&](int64_t i) {
      return std::all_of(d_pre.row(i), d_pre.row(i) + m, [](float v) { return v == 0; });
    };
    int64_t first = 0;
    while (first + 1 < d_pre.rows && is_zero(first)) ++first;
    const float* const row = d_pre.row(first);
    const int64_t top =
        std::max_element(row, row + m, [](float a, float b) { return std::abs(a) < std::abs(b); }) - row;
    for (int64_t j = 0; j < m; ++j) u_[j] = j == top ? 1.f : row[top] == 0 ? 0.f : row[j] / row[top];
    bool same = true;
    for (int64_t i = 0; i < d_pre.rows; ++i) {
      g_[i] = d_pre(i, top);
      for (int64_t j = 0; j < m; ++j) same &= d_pre(i, j) == g_[i] * u_[j];
    }
    return same;
  }

  // w += u w_head and d_w_head (+)= u sum_i g_i y_i for one of the head's outputs.
  void add_output(float u, const float* w_head, float* d_w_head, int64_t units, bool add) {
    const FloatTag d;
    const Floats u_all = hn::Set(d, u);
    for (int64_t r = 0; r < units; r += kLanes) {
      hn::StoreU(hn::MulAdd(u_all, hn::LoadU(d, w_head + r), hn::LoadU(d, w_ + r)), d, w_ + r);
      // Rounded before it is added, as where a spare place is added later: same bits, whoever computes the block.
      const Floats sum = hn::Mul(u_all, hn::LoadU(d, sum_gy_ + r));
      hn::StoreU(add ? hn::Add(hn::LoadU(d, d_w_head + r), sum) : sum, d, d_w_head + r);
    }
  }

  // Selections and sums of kCols columns of y. 0, or NaN where a sum is not finite.
  HWY_INLINE float read_strip(Mat<const float> y, int64_t col) {
    using T = SelectedTile;
    const FloatTag d;
    const hn::RebindToUnsigned<FloatTag> d_word;
    Floats sum_g[T::kVectors], sum_gy[T::kVectors];
    for (int v = 0; v < T::kVectors; ++v) sum_g[v] = sum_gy[v] = hn::Zero(d);
    for (int64_t begin = 0; begin < y.rows; begin += kWord) {
      hn::Vec<decltype(d_word)> of_unit[T::kVectors];
      for (int v = 0; v < T::kVectors; ++v) of_unit[v] = hn::Zero(d_word);
      for (int64_t i = begin; i < std::min(begin + kWord, y.rows); ++i) {
        const Floats g = hn::Set(d, g_[i]);
        const auto bit = hn::Set(d_word, uint32_t{1} << (i - begin));
        uint32_t of_row = 0;
#pragma GCC unroll 8
        for (int v = 0; v < T::kVectors; ++v) {
          const Floats y_v = hn::LoadU(d, y.row(i) + col + v * kLanes);
          const auto on = hn::Gt(y_v, hn::Zero(d));
          of_row |= bits_of(on) << (v * kLanes);
          of_unit[v] = hn::Or(of_unit[v], hn::IfThenElseZero(hn::RebindMask(d_word, on), bit));
          sum_g[v] = hn::Add(sum_g[v], hn::IfThenElseZero(on, g));
          sum_gy[v] = hn::MulAdd(g, y_v, sum_gy[v]);
        }
        by_row_[col / kWord * y.rows + i] = of_row;
      }
      uint32_t* const to = by_unit_ + begin / kWord * y.cols + col;
      for (int v = 0; v < T::kVectors; ++v) hn::StoreU(of_unit[v], d_word, to + v * kLanes);
    }
    for (int v = 0; v < T::kVectors; ++v) {
      hn::StoreU(sum_g[v], d, sum_g_ + col + v * kLanes);
      hn::StoreU(sum_gy[v], d, sum_gy_ + col + v * kLanes);
    }
    return zero_if_finite(sum_g_ + col, T::kCols) + zero_if_finite(sum_gy_ + col, T::kCols);
  }

  float g_[kMostRows], u_[kFewOutputs];
  float w_[kMostUnits], sum_g_[kMostUnits], sum_gy_[kMostUnits];
  uint32_t by_row_[kMostUnits / kWord * kMostRows];                 // selections of units for every row
  uint32_t by_unit_[(kMostRows + kWord - 1) / kWord * kMostUnits];  // and of rows for every unit
};

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
