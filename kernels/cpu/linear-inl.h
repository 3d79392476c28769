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

// pre[j] = <x, w_j> for kCount rows of w
template <int kCount>
HWY_INLINE void dot_rows(const float* x, Mat<const float> w, int64_t j, float* pre) {
  const FloatTag d;
  Floats even[kCount], odd[kCount];
  for (int c = 0; c < kCount; ++c) even[c] = odd[c] = hn::Zero(d);
  int64_t k = 0;
  for (; k + 2 * kLanes <= w.cols; k += 2 * kLanes) {
    const Floats x0 = hn::LoadU(d, x + k), x1 = hn::LoadU(d, x + k + kLanes);
    for (int c = 0; c < kCount; ++c) {
      const float* row = w.row(j + c) + k;
      even[c] = hn::MulAdd(x0, hn::LoadU(d, row), even[c]);
      odd[c] = hn::MulAdd(x1, hn::LoadU(d, row + kLanes), odd[c]);
    }
  }
  for (; k < w.cols; k += kLanes) {
    const int64_t count = std::min(kLanes, w.cols - k);
    const Floats x0 = load_part(x + k, count);
    for (int c = 0; c < kCount; ++c) even[c] = hn::MulAdd(x0, load_part(w.row(j + c) + k, count), even[c]);
  }
  for (int c = 0; c < kCount; ++c) pre[c] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[c], odd[c])));
}

// y = f(x W^T + b) on `rows`.
template <Activation kAct>
HWY_INLINE void dot_forward_rows(Mat<const float> x, Mat<const float> w, Range rows,
                                 const BiasAndActivation<kAct>& sink) {
  const int64_t out = w.rows;
  HWY_ALIGN float pre[kLanes + 4];
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    for (int64_t col = 0; col < out; col += kLanes) {
      const int64_t count = std::min(kLanes, out - col);
      int64_t j = 0;
      for (; j + 4 <= count; j += 4) dot_rows<4>(x.row(i), w, col + j, pre + j);
      for (; j + 2 <= count; j += 2) dot_rows<2>(x.row(i), w, col + j, pre + j);
      for (; j < count; ++j) dot_rows<1>(x.row(i), w, col + j, pre + j);
      sink(i, col, hn::Load(FloatTag(), pre), count);
    }
  }
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
