// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The gradient penalty on the CPU. Every product is one of gemm-inl.h, and everything elementwise happens as
// its tiles are stored (formulas and letters of gradient_penalty.h, f' and f'' of activation-inl.h):
//   forward    x W1^T   -> h1                    backward   r W1^T  -> u1, q, c1 = f''(h1) p v1
//              h1 W2^T  -> h2, u2                           q W2^T  -> u2, m f2, a2
//              u2 W2    -> v1, u1                           a2 W2   -> a1 = f1 (a2 W2) + c1
//              u1 W1    -> g                                d_W1, d_W2: two terms each in one columns_product
// For ReLU f'' = 0, so a1 = a2 = 0 and their products are left out.
// Cost  forward 4 n m (m + d) flop, backward 2 n m (4 m + 3 d); tanh. 6 n m + n d floats of scratch.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gradient_penalty.cpp"
// clang-format off
#include "hwy/foreach_target.h"
#include "activation-inl.h"
#include "gemm_columns-inl.h"
// clang-format on

#include <cmath>

#include "../backends.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

Mat<float> take_matrix(Context& ctx, int64_t rows, int64_t cols, const char* op) {
  return {ctx.scratch().take<float>(rows * cols, op), rows, cols};
}

template <class Sink>
void product(Context& ctx, Mat<const float> a, Mat<const float> w, Operand as, const char* op,
             const Sink& sink) {
  const ScratchScope scope(ctx.scratch());
  const auto [depth, cols] = as == Operand::Plain ? std::pair(w.rows, w.cols) : std::pair(w.cols, w.rows);
  float* packed = ctx.scratch().take<float>(depth * panel_count(cols) * Tile::kCols, op);
  rows_product(ctx.pool(), a, pack_panels(ctx.pool(), w, as, packed), sink);
}

// norm_k = |g_k|; the loss is summed in double in order.
void penalty(ThreadPool& pool, const GradientPenaltyForward& op) {
  constexpr int64_t kStep = 64;
  const FloatTag d;
  const int64_t n = op.g.rows, width = op.g.cols;
  pool.parallel_for(chunk_count(n, kStep), [&](int64_t chunk, int) HWY_ATTR {
    const Range rows = chunk_range(n, kStep, chunk);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      Floats sum = hn::Zero(d);
      for (int64_t j = 0; j < width; j += kLanes) {
        const Floats g = load_part(op.g.row(i) + j, width - j);
        sum = hn::MulAdd(g, g, sum);
      }
      op.norm[i] = std::sqrt(hn::GetLane(hn::SumOfLanes(d, sum)));
    }
  });
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double excess = static_cast<double>(op.norm[i]) - 1;
    total += excess * excess;
  }
  op.loss[0] = static_cast<float>(static_cast<double>(op.lambda) * total / static_cast<double>(n));
}

template <Activation kAct>
void forward(Context& ctx, const GradientPenaltyForward& op) {
  const char* name = "gradient_penalty_forward";
  const ScratchScope scope(ctx.scratch());
  const int64_t n = op.x.rows, m = op.w1.rows;
  const Mat<float> u2 = take_matrix(ctx, n, m, name), u1 = take_matrix(ctx, n, m, name);
  const auto to_h1 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
    store_part(activate<kAct>(hn::Add(v, load_part(op.b1.data + j, count))), op.h1.row(i) + j, count);
  };
  const auto to_h2_u2 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
    const Floats h2 = activate<kAct>(hn::Add(v, load_part(op.b2.data + j, count)));
    store_part(h2, op.h2.row(i) + j, count);
    store_part(times_slope<kAct>(load_part(op.w3.data + j, count), h2), u2.row(i) + j, count);
  };
  const auto to_v1_u1 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
    store_part(v, op.v1.row(i) + j, count);
    store_part(times_slope<kAct>(v, load_part(op.h1.row(i) + j, count)), u1.row(i) + j, count);
  };
  product(ctx, op.x, op.w1, Operand::Transposed, name, sink_over(to_h1, op.h1));
  product(ctx, op.h1, op.w2, Operand::Transposed, name, sink_over(to_h2_u2, op.h2, u2));
  product(ctx, u2, op.w2, Operand::Plain, name, sink_over(to_v1_u1, op.h1, op.v1, u1));
  product(ctx, u1, op.w1, Operand::Plain, name, StoreInto{op.g});
  penalty(ctx.pool(), op);
}

// r = d_loss 2 lambda/n (|g| - 1) g/|g|
void scaled_gradient(ThreadPool& pool, const GradientPenaltyBackward& op, Mat<float> r) {
  constexpr int64_t kStep = 64;
  const float factor = op.d_loss[0] * 2.f * op.lambda / static_cast<float>(r.rows);
  pool.parallel_for(chunk_count(r.rows, kStep), [&](int64_t chunk, int) HWY_ATTR {
    const Range rows = chunk_range(r.rows, kStep, chunk);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const float norm = op.norm[i], scale = norm == 0.f ? 0.f : factor * (norm - 1.f) / norm;
      for (int64_t j = 0; j < r.cols; ++j) r(i, j) = scale * op.g(i, j);
    }
  });
}

struct BackwardScratch {
  Mat<float> r, u1, q, a1, u2, m_f2, a2;
};

// q = p f1, m = q W2^T and what follows from them element by element; a1 holds c1 = f''(h1) p v1 until later.
template <Activation kAct>
void backward_rows(Context& ctx, const GradientPenaltyBackward& op, const BackwardScratch& s,
                   const char* name) {
  constexpr bool kCurved = kAct == Activation::Tanh;
  const auto to_u1_q_c1 = [&](int64_t i, int64_t j, Floats p, int64_t count) HWY_ATTR {
    const Floats h1 = load_part(op.h1.row(i) + j, count), v1 = load_part(op.v1.row(i) + j, count);
    store_part(times_slope<kAct>(v1, h1), s.u1.row(i) + j, count);
    store_part(times_slope<kAct>(p, h1), s.q.row(i) + j, count);
    if (kCurved) store_part(times_curvature<kAct>(hn::Mul(p, v1), h1), s.a1.row(i) + j, count);
  };
  const auto to_u2_mf2_a2 = [&](int64_t i, int64_t j, Floats m, int64_t count) HWY_ATTR {
    const Floats h2 = load_part(op.h2.row(i) + j, count), w3 = load_part(op.w3.data + j, count);
    store_part(times_slope<kAct>(w3, h2), s.u2.row(i) + j, count);
    store_part(times_slope<kAct>(m, h2), s.m_f2.row(i) + j, count);
    if (kCurved) store_part(times_curvature<kAct>(hn::Mul(m, w3), h2), s.a2.row(i) + j, count);
  };
  product(ctx, s.r, op.w1, Operand::Transposed, name, sink_over(to_u1_q_c1, op.h1, op.v1, s.u1, s.q, s.a1));
  product(ctx, s.q, op.w2, Operand::Transposed, name, sink_over(to_u2_mf2_a2, op.h2, s.u2, s.m_f2, s.a2));
  if constexpr (kCurved) {
    const auto to_a1 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
      float* a1 = s.a1.row(i) + j;
      const Floats first = times_slope<kAct>(v, load_part(op.h1.row(i) + j, count));
      store_part(hn::Add(first, load_part(a1, count)), a1, count);
    };
    product(ctx, s.a2, op.w2, Operand::Plain, name, sink_over(to_a1, op.h1, s.a1));
  }
}

template <Activation kAct>
void backward(Context& ctx, const GradientPenaltyBackward& op) {
  const char* name = "gradient_penalty_backward";
  const ScratchScope scope(ctx.scratch());
  const int64_t n = op.x.rows, m = op.w1.rows;
  const auto hidden = [&] { return take_matrix(ctx, n, m, name); };
  const BackwardScratch s{
      take_matrix(ctx, n, op.x.cols, name), hidden(), hidden(), hidden(), hidden(), hidden(), hidden()};
  scaled_gradient(ctx.pool(), op, s.r);
  backward_rows<kAct>(ctx, op, s, name);
  cpu::column_sum(ctx, ColumnSum{s.m_f2, op.d_w3});
  if constexpr (kAct == Activation::Tanh) {
    columns_product(ctx, {{s.u1, s.r}, {s.a1, op.x, true}}, op.d_w1, op.d_b1, name);
    columns_product(ctx, {{s.u2, s.q}, {s.a2, op.h1, true}}, op.d_w2, op.d_b2, name);
  } else {
    columns_product(ctx, {{s.u1, s.r}}, op.d_w1, {}, name);
    columns_product(ctx, {{s.u2, s.q}}, op.d_w2, {}, name);
    std::fill_n(op.d_b1.data, m, 0.f);
    std::fill_n(op.d_b2.data, m, 0.f);
  }
}

}  // namespace

void gradient_penalty_forward_simd(Context& ctx, const GradientPenaltyForward& op) {
  op.act == Activation::Tanh ? forward<Activation::Tanh>(ctx, op) : forward<Activation::Relu>(ctx, op);
}

void gradient_penalty_backward_simd(Context& ctx, const GradientPenaltyBackward& op) {
  op.act == Activation::Tanh ? backward<Activation::Tanh>(ctx, op) : backward<Activation::Relu>(ctx, op);
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pwdice::cpu {

HWY_EXPORT(gradient_penalty_forward_simd);
HWY_EXPORT(gradient_penalty_backward_simd);

void gradient_penalty_forward(Context& ctx, const GradientPenaltyForward& op) {
  HWY_DYNAMIC_DISPATCH(gradient_penalty_forward_simd)(ctx, op);
}
void gradient_penalty_backward(Context& ctx, const GradientPenaltyBackward& op) {
  HWY_DYNAMIC_DISPATCH(gradient_penalty_backward_simd)(ctx, op);
}

}  // namespace pwdice::cpu
#endif
