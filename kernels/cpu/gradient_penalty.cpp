// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The gradient penalty on the CPU. A block of rows passes through all products while it is in L2, the value's and
// then the gradient's, and everything elementwise happens as tiles are stored (letters of gradient_penalty.h, f' and
// f'' of activation-inl.h; for tanh f'' v = -2 h (f' v), so that u1 and u2 serve for both derivatives):
//   x W1^T   -> h1                    r W1^T  -> q = p f1, c1 = f''(h1) p W2^T u2 = -2 h1 p u1
//   h1 W2^T  -> h2, u2                q W2^T  -> sum m f2, a2 = f''(h2) m w3 = -2 h2 m u2
//   u2 W2    -> u1                    a2 W2   -> a1 = f1 (a2 W2) + c1
//   u1 W1    -> g, |g|, r             d_W1 += [u1; a1]^T [r; x], d_W2 += [u2; a2]^T [q; h1]
// For ReLU f'' = 0, so a1 = a2 = 0 and their products are left out.
// Cost  2 n m (6 m + 5 d) flop, tanh of 2 n m; x is read twice, and nothing of size n is written but |g|. Per thread
//       6 blocks of 56 x m floats of scratch and 2 of 56 x d.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gradient_penalty.cpp"
// clang-format off
#include "hwy/foreach_target.h"
#include "activation-inl.h"
#include "gemm_slice-inl.h"
// clang-format on

#include <cmath>
#include <utility>

#include "../backends.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Mat<T> rows_of(Mat<T> m, Range rows) {
  return m.slice_rows(rows.begin, rows.end - rows.begin);
}

struct PenaltyPanels {
  Panels w1_t, w2_t, w2, w1;

  PenaltyPanels(Context& ctx, const GradientPenalty& op, const char* name) {
    const ToPack list[] = {
        to_pack(ctx, op.w1, Operand::Transposed, name), to_pack(ctx, op.w2, Operand::Transposed, name),
        to_pack(ctx, op.w2, Operand::Plain, name), to_pack(ctx, op.w1, Operand::Plain, name)};
    pack_all(ctx.pool(), list);
    w1_t = list[0].panels(), w2_t = list[1].panels(), w2 = list[2].panels(), w1 = list[3].panels();
  }
};

// What a thread keeps of a block of n rows, carved from penalty_block_floats(d, m). u and a of a layer lie one below the
// other, and so do r and x; a2 takes the place of h2, and r that of g.
struct PenaltyBlock {
  Mat<float> h1, q, u1_a1, u2_a2, r_x;
  Mat<float> u1, a1, u2, a2, r, x;
  Vec<float> m_f2;  // column sums

  PenaltyBlock(float* memory, int64_t n, int64_t d, int64_t m) {
    const int64_t stride = mlp_stride(m);
    const auto take = [&](int64_t rows) {
      return Mat<float>(std::exchange(memory, memory + rows * stride), rows, m, stride);
    };
    h1 = take(n), q = take(n), u1_a1 = take(2 * n), u2_a2 = take(2 * n);
    m_f2 = {take(1).data, m};
    r_x = {memory, 2 * n, d};
    const Range upper{0, n}, lower{n, 2 * n};
    u1 = rows_of(u1_a1, upper), a1 = rows_of(u1_a1, lower);
    u2 = rows_of(u2_a2, upper), a2 = rows_of(u2_a2, lower);
    r = rows_of(r_x, upper), x = rows_of(r_x, lower);
  }
};

// From g to r, and the norms.
void scale_gradients(const GradientPenalty& op, Range rows, Mat<float> g) {
  const FloatTag d;
  const float factor = 2.f * op.lambda / static_cast<float>(op.x.rows);
  for (int64_t i = 0; i < g.rows; ++i) {
    float* const row = g.row(i);
    Floats sum = hn::Zero(d);
    for (int64_t j = 0; j < g.cols; j += kLanes) {
      const Floats v = load_part(row + j, g.cols - j);
      sum = hn::MulAdd(v, v, sum);
    }
    const float norm = std::sqrt(hn::GetLane(hn::SumOfLanes(d, sum)));
    const Floats scale = hn::Set(d, norm == 0.f ? 0.f : factor * (norm - 1.f) / norm);
    for (int64_t j = 0; j < g.cols; j += kLanes) {
      store_part(hn::Mul(scale, load_part(row + j, g.cols - j)), row + j, g.cols - j);
    }
    op.norm[rows.begin + i] = norm;
  }
}

// h1, h2 (in a2), u2, u1, r
template <Activation kAct>
HWY_INLINE void value_of_block(const GradientPenalty& op, const PenaltyPanels& panels,
                               const PenaltyBlock& own, Range rows) {
  constexpr bool kHeavy = kAct == Activation::Tanh;
  const Range all{0, own.h1.rows};
  const Mat<float>&h1 = own.h1, &h2 = own.a2, &u1 = own.u1, &u2 = own.u2;
  const auto to_h1 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
    store_part(activate<kAct>(hn::Add(v, load_part(op.b1.data + j, count))), h1.row(i) + j, count);
  };
  const auto to_h2_u2 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
    const Floats h = activate<kAct>(hn::Add(v, load_part(op.b2.data + j, count)));
    store_part(h, h2.row(i) + j, count);
    store_part(times_slope<kAct>(load_part(op.w3.data + j, count), h), u2.row(i) + j, count);
  };
  const auto to_u1 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
    store_part(times_slope<kAct>(v, load_part(h1.row(i) + j, count)), u1.row(i) + j, count);
  };
  product_rows(rows_of(op.x, rows), panels.w1_t, all, sink_over<kHeavy>(to_h1, h1));
  product_rows(h1, panels.w2_t, all, sink_over<kHeavy>(to_h2_u2, h2, u2));
  product_rows(u2, panels.w2, all, sink_over(to_u1, h1, u1));
  product_rows(u1, panels.w1, all, StoreInto{own.r});
  scale_gradients(op, rows, own.r);
}

// q, and for tanh a2 and a1, which holds c1 until the last product. m f2 is summed on the way.
template <Activation kAct>
HWY_INLINE void gradient_of_block(const PenaltyPanels& panels, const PenaltyBlock& own) {
  constexpr bool kCurved = kAct == Activation::Tanh;
  const FloatTag d;
  const Range all{0, own.h1.rows};
  const Mat<float>&h1 = own.h1, &q = own.q, &u1 = own.u1, &a1 = own.a1, &u2 = own.u2, &a2 = own.a2;
  std::fill_n(own.m_f2.data, own.m_f2.size, 0.f);
  const auto bent = [&](Floats h, Floats v, Floats u)
                        HWY_ATTR { return hn::Mul(hn::Mul(hn::Set(d, -2.f), h), hn::Mul(v, u)); };
  const auto to_q_c1 = [&](int64_t i, int64_t j, Floats p, int64_t count) HWY_ATTR {
    const Floats h = load_part(h1.row(i) + j, count);
    store_part(times_slope<kAct>(p, h), q.row(i) + j, count);
    if (kCurved) store_part(bent(h, p, load_part(u1.row(i) + j, count)), a1.row(i) + j, count);
  };
  const auto to_sum_a2 = [&](int64_t i, int64_t j, Floats m, int64_t count) HWY_ATTR {
    float *const sum = own.m_f2.data + j, *const at = a2.row(i) + j;
    const Floats h = load_part(at, count);
    store_part(hn::Add(load_part(sum, count), times_slope<kAct>(m, h)), sum, count);
    if (kCurved) store_part(bent(h, m, load_part(u2.row(i) + j, count)), at, count);
  };
  product_rows(own.r, panels.w1_t, all, sink_over(to_q_c1, h1, u1, q, a1));
  product_rows(q, panels.w2_t, all, sink_over(to_sum_a2, a2, u2));
  if constexpr (kCurved) {
    const auto to_a1 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
      float* const at = a1.row(i) + j;
      const Floats slope = times_slope<kAct>(v, load_part(h1.row(i) + j, count));
      store_part(hn::Add(slope, load_part(at, count)), at, count);
    };
    product_rows(a2, panels.w2, all, sink_over(to_a1, h1, a1));
  }
}

// The share of a block in the sums over rows.
template <Activation kAct>
HWY_INLINE void add_block(const GradientPenalty& op, const PenaltyBlock& own, const SliceSums& sums,
                          int64_t place, Range rows, bool add) {
  for (int64_t i = 0; i < own.m_f2.size; ++i) sums.d_b(place, 2)[i] += static_cast<double>(own.m_f2[i]);
  if constexpr (kAct == Activation::Tanh) {
    for (int64_t i = 0; i < own.x.rows; ++i) std::copy_n(op.x.row(rows.begin + i), own.x.cols, own.x.row(i));
    sums.add(place, 0, own.u1_a1, {own.r_x}, add);
    sums.add(place, 1, own.u2_a2, {own.q, own.h1}, add);
    add_column_sums(own.a1.data, own.a1.stride, own.a1.rows, own.a1.cols, sums.d_b(place, 0));
    add_column_sums(own.a2.data, own.a2.stride, own.a2.rows, own.a2.cols, sums.d_b(place, 1));
  } else {
    sums.add(place, 0, own.u1, {own.r}, add);
    sums.add(place, 1, own.u2, {own.q}, add);
  }
}

// Summed in double in order.
void sum_loss(const GradientPenalty& op) {
  double total = 0;
  for (int64_t i = 0; i < op.norm.size; ++i) {
    const double excess = static_cast<double>(op.norm[i]) - 1;
    total += excess * excess;
  }
  op.loss[0] = static_cast<float>(static_cast<double>(op.lambda) * total / static_cast<double>(op.norm.size));
}

template <Activation kAct>
void penalty(Context& ctx, const GradientPenalty& op) {
  const char* name = "gradient_penalty";
  const ScratchScope scope(ctx.scratch());
  const int64_t d = op.x.cols, m = op.w1.rows;
  const PenaltyPanels panels(ctx, op, name);
  // d_w3 is a sum over rows alone, like a bias.
  const MlpGradient targets[] = {{op.d_w1, op.d_b1}, {op.d_w2, op.d_b2}, {{nullptr, m, 0}, op.d_w3}};
  SliceSums sums(ctx, op.x.rows, Tile::kBlockRows, targets, name);
  const int64_t floats = penalty_block_floats(d, m);
  float* memory = ctx.scratch().take<float>(ctx.threads() * floats, name);
  sums.run(ctx.pool(), [&](int64_t place, Range rows, bool add, int thread) HWY_ATTR {
    const PenaltyBlock own(memory + thread * floats, rows.end - rows.begin, d, m);
    value_of_block<kAct>(op, panels, own, rows);
    gradient_of_block<kAct>(panels, own);
    add_block<kAct>(op, own, sums, place, rows, add);
  });
  sums.add_up(ctx.pool());
  sum_loss(op);
}

}  // namespace

void gradient_penalty_simd(Context& ctx, const GradientPenalty& op) {
  op.act == Activation::Tanh ? penalty<Activation::Tanh>(ctx, op) : penalty<Activation::Relu>(ctx, op);
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pwdice::cpu {

HWY_EXPORT(gradient_penalty_simd);

void gradient_penalty(Context& ctx, const GradientPenalty& op) {
  HWY_DYNAMIC_DISPATCH(gradient_penalty_simd)(ctx, op);
}

}  // namespace pwdice::cpu
#endif
