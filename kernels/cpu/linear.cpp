// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Linear layers on the CPU.
//   forward    y = f(x W^T + b)         W^T packed in panels per call; bias and f as the tiles are stored
//   input      d_x = (d_pre W) f'(x)    W packed in panels; f' as the tiles are stored
//   params     d_w = d_pre^T x          columns_product, which sums d_b on the way
// Few outputs (a head) or few rows (acting) would waste the packing and most of a panel: there y_ij is a
// plain dot product of two rows.
// Cost  2 n in out flop each; packing touches in out floats (params: n (in + out)).

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
// clang-format off
#include "hwy/foreach_target.h"
#include "activation-inl.h"
#include "gemm_columns-inl.h"
// clang-format on

#include "../backends.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

template <Activation kAct>
struct BiasAndActivation {
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

inline constexpr int64_t kFewOutputs = 8, kFewRows = 4;

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

template <Activation kAct>
void dot_forward(ThreadPool& pool, const LinearForward& op) {
  const int64_t n = op.y.rows, out = op.y.cols;
  const BiasAndActivation<kAct> sink{op.b, op.y};
  const int64_t step = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, out * op.w.cols));
  pool.parallel_for(chunk_count(n, step), [&](int64_t chunk, int) HWY_ATTR {
    const Range rows = chunk_range(n, step, chunk);
    HWY_ALIGN float pre[kLanes + 4];
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t col = 0; col < out; col += kLanes) {
        const int64_t count = std::min(kLanes, out - col);
        int64_t j = 0;
        for (; j + 4 <= count; j += 4) dot_rows<4>(op.x.row(i), op.w, col + j, pre + j);
        for (; j < count; ++j) dot_rows<1>(op.x.row(i), op.w, col + j, pre + j);
        sink(i, col, hn::Load(FloatTag(), pre), count);
      }
    }
  });
}

// -- the three ops ---------------------------------------------------------------------------------------

template <Activation kAct>
void forward(Context& ctx, const LinearForward& op) {
  if (op.w.rows <= kFewOutputs || op.x.rows <= kFewRows) return dot_forward<kAct>(ctx.pool(), op);
  const ScratchScope scope(ctx.scratch());
  const int64_t floats = op.w.cols * panel_count(op.w.rows) * Tile::kCols;
  float* packed = ctx.scratch().take<float>(floats, "linear_forward");
  const Panels panels = pack_panels(ctx.pool(), op.w, Operand::Transposed, packed);
  rows_product(ctx.pool(), op.x, panels, BiasAndActivation<kAct>{op.b, op.y});
}

template <Activation kAct>
void backward_input(Context& ctx, const LinearBackwardInput& op) {
  const ScratchScope scope(ctx.scratch());
  const int64_t floats = op.w.rows * panel_count(op.w.cols) * Tile::kCols;
  float* packed = ctx.scratch().take<float>(floats, "linear_backward_input");
  const Panels panels = pack_panels(ctx.pool(), op.w, Operand::Plain, packed);
  rows_product(ctx.pool(), op.d_pre, panels, TimesSlope<kAct>{op.x, op.d_x});
}

}  // namespace

void linear_forward_simd(Context& ctx, const LinearForward& op) {
  switch (op.act) {
    case Activation::None:
      return forward<Activation::None>(ctx, op);
    case Activation::Relu:
      return forward<Activation::Relu>(ctx, op);
    case Activation::Tanh:
      return forward<Activation::Tanh>(ctx, op);
  }
}

void linear_backward_input_simd(Context& ctx, const LinearBackwardInput& op) {
  switch (op.x_act) {
    case Activation::None:
      return backward_input<Activation::None>(ctx, op);
    case Activation::Relu:
      return backward_input<Activation::Relu>(ctx, op);
    case Activation::Tanh:
      return backward_input<Activation::Tanh>(ctx, op);
  }
}

void linear_backward_params_simd(Context& ctx, const LinearBackwardParams& op) {
  columns_product(ctx, {{op.d_pre, op.x, true}}, op.d_w, op.d_b, "linear_backward_params");
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pwdice::cpu {

HWY_EXPORT(linear_forward_simd);
HWY_EXPORT(linear_backward_input_simd);
HWY_EXPORT(linear_backward_params_simd);

void linear_forward(Context& ctx, const LinearForward& op) {
  HWY_DYNAMIC_DISPATCH(linear_forward_simd)(ctx, op);
}
void linear_backward_input(Context& ctx, const LinearBackwardInput& op) {
  HWY_DYNAMIC_DISPATCH(linear_backward_input_simd)(ctx, op);
}
void linear_backward_params(Context& ctx, const LinearBackwardParams& op) {
  HWY_DYNAMIC_DISPATCH(linear_backward_params_simd)(ctx, op);
}

}  // namespace pwdice::cpu
#endif
