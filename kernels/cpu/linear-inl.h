// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Some rows of a linear layer, for any Highway target: what linear.cpp and mlp.cpp deal out to threads.
// Include in a file that uses foreach_target.
//
//   BiasAndActivation    y = f(x W^T + b)         as the tiles of x W^T are stored
//   TimesSlope           d_x = (d_pre W) f'(x)    as the tiles of d_pre W are stored
//   dot_forward_rows     y = f(x W^T + b)         without tiles
//
// Few outputs (a head) or few rows (acting) would waste the packing and most of a panel: there y_ij is a
// plain dot product of two rows.

#if defined(PWDICE_KERNELS_CPU_LINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_LINEAR_INL_H_
#undef PWDICE_KERNELS_CPU_LINEAR_INL_H_
#else
#define PWDICE_KERNELS_CPU_LINEAR_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "activation-inl.h"
#include "gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

template <Activation kAct>
struct BiasAndActivation {
  static constexpr bool kHeavy = kAct == Activation::Tanh;
  Vec<const float> b;
  Mat<float> y;

  HWY_INLINE void expect(int64_t row, int64_t col) const { prefetch(y.row(row) + col, Tile::kCols); }
  HWY_INLINE void operator()(int64_t row, int64_t col, Floats v, int64_t count) const {
    store_part(activate<kAct>(hn::Add(v, load_part(b.data + col, count))), y.row(row) + col, count);
  }
};

template <Activation kAct>
struct TimesSlope {
  Mat<const float> x;
  Mat<float> d_x;

  HWY_INLINE void expect(int64_t row, int64_t col) const {
    prefetch(d_x.row(row) + col, Tile::kCols);
    if constexpr (kAct != Activation::None) prefetch(x.row(row) + col, Tile::kCols);
  }
  HWY_INLINE void operator()(int64_t row, int64_t col, Floats v, int64_t count) const {
    if constexpr (kAct != Activation::None) v = times_slope<kAct>(v, load_part(x.row(row) + col, count));
    store_part(v, d_x.row(row) + col, count);
  }
};

// -- dot products ----------------------------------------------------------------------------------------

// pre[r][c] = <x_(i + r), w_(j + c)>: twelve chains of four rows and three outputs keep the FMA units busy.
inline constexpr int kDotRows = 4, kDotOutputs = 3;
inline constexpr int64_t kDotWidth = std::max(kFewOutputs, kLanes);  // of a row of pre, whole vectors

#if HWY_TARGET != HWY_SCALAR
// to[i] = sum over pieces of four lanes of their lane i
template <class D>
HWY_INLINE void fold_to_four(D d, hn::Vec<D> v, float* to) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    hn::Store(v, d, to);
  } else {
    const hn::Half<D> half;
    fold_to_four(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), to);
  }
}
#endif

// The sums of four vectors: within pieces of four lanes, then over the pieces. Half the shuffles of four sums one by
// one.
HWY_INLINE void sums_of_four(Floats v0, Floats v1, Floats v2, Floats v3, float* to) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = hn::GetLane(v0), to[1] = hn::GetLane(v1), to[2] = hn::GetLane(v2), to[3] = hn::GetLane(v3);
#else
  const FloatTag d;
  const Floats v02 = hn::Add(hn::InterleaveLower(d, v0, v2), hn::InterleaveUpper(d, v0, v2));
  const Floats v13 = hn::Add(hn::InterleaveLower(d, v1, v3), hn::InterleaveUpper(d, v1, v3));
  const Floats sums = hn::Add(hn::InterleaveLower(d, v02, v13), hn::InterleaveUpper(d, v02, v13));
  fold_to_four(d, sums, to);
#endif
}

template <int kRows, int kCount>
HWY_INLINE void dot_tile(Mat<const float> x, int64_t i, Mat<const float> w, int64_t j,
                         float (*pre)[kDotWidth]) {
  const FloatTag d;
  Floats sum[kRows][kCount];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kCount; ++c) sum[r][c] = hn::Zero(d);
  }
  const auto add = [&](auto load, int64_t k) HWY_ATTR {
    Floats w_k[kCount];
    for (int c = 0; c < kCount; ++c) w_k[c] = load(w.row(j + c) + k);
    for (int r = 0; r < kRows; ++r) {
      const Floats x_k = load(x.row(i + r) + k);
      for (int c = 0; c < kCount; ++c) sum[r][c] = hn::MulAdd(x_k, w_k[c], sum[r][c]);
    }
  };
  int64_t k = 0;
  for (; k + kLanes <= w.cols; k += kLanes) {
    add([&](const float* p) HWY_ATTR { return hn::LoadU(d, p); }, k);
  }
  if (k < w.cols) add([&](const float* p) HWY_ATTR { return load_part(p, w.cols - k); }, k);
  for (int c = 0; c < kCount; ++c) {
    if constexpr (kRows == 4) {
      HWY_ALIGN float sums[4];
      sums_of_four(sum[0][c], sum[1][c], sum[2][c], sum[3][c], sums);
      for (int r = 0; r < kRows; ++r) pre[r][j % kFewOutputs + c] = sums[r];
    } else {
      for (int r = 0; r < kRows; ++r) pre[r][j % kFewOutputs + c] = hn::GetLane(hn::SumOfLanes(d, sum[r][c]));
    }
  }
}

// kRows rows of y = f(x W^T + b), kFewOutputs columns at a time.
template <int kRows, Activation kAct>
HWY_INLINE void dot_forward_tile(Mat<const float> x, Mat<const float> w, int64_t i,
                                 const BiasAndActivation<kAct>& sink) {
  HWY_ALIGN float pre[kRows][kDotWidth];
  for (int64_t begin = 0; begin < w.rows; begin += kFewOutputs) {
    const int64_t end = std::min(begin + kFewOutputs, w.rows);
    int64_t j = begin;
    for (; j + kDotOutputs <= end; j += kDotOutputs) dot_tile<kRows, kDotOutputs>(x, i, w, j, pre);
    if (j + 2 == end) dot_tile<kRows, 2>(x, i, w, j, pre);
    if (j + 1 == end) dot_tile<kRows, 1>(x, i, w, j, pre);
    for (int r = 0; r < kRows; ++r) {
      for (int64_t col = begin; col < end; col += kLanes) {
        const int64_t count = std::min(kLanes, end - col);
        sink(i + r, col, load_part(pre[r] + (col - begin), count), count);
      }
    }
  }
}

// y = f(x W^T + b) on `rows`.
template <Activation kAct>
HWY_INLINE void dot_forward_rows(Mat<const float> x, Mat<const float> w, Range rows,
                                 const BiasAndActivation<kAct>& sink) {
  int64_t i = rows.begin;
  for (; i + kDotRows <= rows.end; i += kDotRows) dot_forward_tile<kDotRows>(x, w, i, sink);
  for (; i < rows.end; ++i) dot_forward_tile<1>(x, w, i, sink);
}

// Calls body with the activation as a constant: body(std::integral_constant<Activation, ..>).
template <class Body>
HWY_INLINE void with_activation(Activation act, const Body& body) {
  switch (act) {
    case Activation::None:
      return body(std::integral_constant<Activation, Activation::None>());
    case Activation::Relu:
      return body(std::integral_constant<Activation, Activation::Relu>());
    case Activation::Tanh:
      return body(std::integral_constant<Activation, Activation::Tanh>());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
