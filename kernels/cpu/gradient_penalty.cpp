// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The gradient penalty on the CPU. A block of rows passes through all products while it is in L2, and
// everything elementwise happens as tiles are stored (letters of gradient_penalty.h, f' and f'' of
// activation-inl.h):
//   forward    x W1^T   -> h1                    backward   r W1^T  -> u1, q, c1 = f''(h1) p v1
//              h1 W2^T  -> h2, u2                           q W2^T  -> u2, sum m f2, a2
//              u2 W2    -> v1, u1                           a2 W2   -> a1 = f1 (a2 W2) + c1
//              u1 W1    -> g, |g|                           d_W1 += [u1; a1]^T [r; x], d_W2 += [u2; a2]^T [q; h1]
// For ReLU f'' = 0, so a1 = a2 = 0 and their products are left out.
// Cost  forward 4 n m (m + d) flop, backward 2 n m (4 m + 3 d); tanh. h1, h2, v1 and g are written and read
//       once; per thread about 5 blocks of 48 x m floats of scratch and 2 of 48 x d.

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

Mat<float> take_hidden(Context& ctx, int64_t rows, int64_t cols, const char* op) {
  const int64_t stride = mlp_stride(cols);
  return {ctx.scratch().take<float>(rows * stride, op), rows, cols, stride};
}

template <class T>
Mat<T> rows_of(Mat<T> m, Range rows) {
  return m.slice_rows(rows.begin, rows.end - rows.begin);
}

// -- forward ---------------------------------------------------------------------------------------------

struct ForwardPanels {
  Panels w1_t, w2_t, w2, w1;

  ForwardPanels(Context& ctx, const GradientPenaltyForward& op, const char* name) {
    const ToPack list[] = {
        to_pack(ctx, op.w1, Operand::Transposed, name), to_pack(ctx, op.w2, Operand::Transposed, name),
        to_pack(ctx, op.w2, Operand::Plain, name), to_pack(ctx, op.w1, Operand::Plain, name)};
    pack_all(ctx.pool(), list);
    w1_t = list[0].panels(), w2_t = list[1].panels(), w2 = list[2].panels(), w1 = list[3].panels();
  }
};

// norm_k = |g_k|
void row_norms(const GradientPenaltyForward& op, Range rows) {
  const FloatTag d;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    Floats sum = hn::Zero(d);
    for (int64_t j = 0; j < op.g.cols; j += kLanes) {
      const Floats g = load_part(op.g.row(i) + j, op.g.cols - j);
      sum = hn::MulAdd(g, g, sum);
    }
    op.norm[i] = std::sqrt(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
}

template <Activation kAct>
void forward_rows(const GradientPenaltyForward& op, const ForwardPanels& panels, Range rows, Mat<float> u2,
                  Mat<float> u1) {
  const auto block = [&](auto m) { return rows_of(m, rows); };
  const Mat<float> h1 = block(op.h1), h2 = block(op.h2), v1 = block(op.v1), g = block(op.g);
  const Range all{0, rows.end - rows.begin};
  constexpr bool kHeavy = kAct == Activation::Tanh;
  const auto to_h1 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
    store_part(activate<kAct>(hn::Add(v, load_part(op.b1.data + j, count))), h1.row(i) + j, count);
  };
  const auto to_h2_u2 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
    const Floats h = activate<kAct>(hn::Add(v, load_part(op.b2.data + j, count)));
    store_part(h, h2.row(i) + j, count);
    store_part(times_slope<kAct>(load_part(op.w3.data + j, count), h), u2.row(i) + j, count);
  };
  const auto to_v1_u1 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
    store_part(v, v1.row(i) + j, count);
    store_part(times_slope<kAct>(v, load_part(h1.row(i) + j, count)), u1.row(i) + j, count);
  };
  product_rows(block(op.x), panels.w1_t, all, sink_over<kHeavy>(to_h1, h1));
  product_rows(h1, panels.w2_t, all, sink_over<kHeavy>(to_h2_u2, h2, u2));
  product_rows(rows_of(u2, all), panels.w2, all, sink_over(to_v1_u1, h1, v1, u1));
  product_rows(rows_of(u1, all), panels.w1, all, StoreInto{g});
  row_norms(op, rows);
}

// The loss is summed in double in order.
void penalty(const GradientPenaltyForward& op) {
  double total = 0;
  for (int64_t i = 0; i < op.norm.size; ++i) {
    const double excess = static_cast<double>(op.norm[i]) - 1;
    total += excess * excess;
  }
  op.loss[0] = static_cast<float>(static_cast<double>(op.lambda) * total / static_cast<double>(op.norm.size));
}

template <Activation kAct>
void forward(Context& ctx, const GradientPenaltyForward& op) {
  const char* name = "gradient_penalty_forward";
  const ScratchScope scope(ctx.scratch());
  const ForwardPanels panels(ctx, op, name);
  const int64_t most = Tile::kBlockRows, m = op.w1.rows;
  const Mat<float> u2 = take_hidden(ctx, ctx.threads() * most, m, name);
  const Mat<float> u1 = take_hidden(ctx, ctx.threads() * most, m, name);
  const RowParts chunks = row_chunks(op.x.rows);
  ctx.pool().parallel_for(chunks.count, [&](int64_t chunk, int thread) HWY_ATTR {
    const Range own{thread * most, (thread + 1) * most};
    forward_rows<kAct>(op, panels, chunks[chunk], rows_of(u2, own), rows_of(u1, own));
  });
  penalty(op);
}

// -- backward --------------------------------------------------------------------------------------------

// What a thread keeps of a block, carved from penalty_block_floats(d, m). u and a of a layer lie one below
// the other, and so do r and x.
struct BlockScratch {
  Mat<float> u1_a1, u2_a2, q, r_x;
  Vec<float> m_f2;  // column sums

  BlockScratch(float* memory, int64_t d, int64_t m) {
    const int64_t n = Tile::kBlockRows, stride = mlp_stride(m);
    const auto take = [&](int64_t rows) {
      return Mat<float>(std::exchange(memory, memory + rows * stride), rows, m, stride);
    };
    u1_a1 = take(2 * n), u2_a2 = take(2 * n), q = take(n);
    m_f2 = {take(1).data, m};
    r_x = {memory, 2 * n, d};
  }
};

// r = d_loss 2 lambda/n (|g| - 1) g/|g|
void scaled_gradient(const GradientPenaltyBackward& op, Range rows, Mat<float> r) {
  const float factor = op.d_loss[0] * 2.f * op.lambda / static_cast<float>(op.x.rows);
  for (int64_t i = 0; i < r.rows; ++i) {
    const float norm = op.norm[rows.begin + i], scale = norm == 0.f ? 0.f : factor * (norm - 1.f) / norm;
    for (int64_t j = 0; j < r.cols; ++j) r(i, j) = scale * op.g(rows.begin + i, j);
  }
}

struct BackwardPanels {
  Panels w1_t, w2_t, w2;

  BackwardPanels(Context& ctx, const GradientPenaltyBackward& op, const char* name) {
    const ToPack list[] = {to_pack(ctx, op.w1, Operand::Transposed, name),
                           to_pack(ctx, op.w2, Operand::Transposed, name),
                           to_pack(ctx, op.w2, Operand::Plain, name)};
    pack_all(ctx.pool(), list);
    w1_t = list[0].panels(), w2_t = list[1].panels(), w2 = list[2].panels();
  }
};

// One block: q = p f1, m = q W2^T and what follows from them element by element; a1 holds c1 = f''(h1) p v1
// until the last product. Then its share in the sums.
template <Activation kAct>
void backward_block(const GradientPenaltyBackward& op, const BackwardPanels& panels, const BlockScratch& own,
                    const SliceSums& sums, int64_t place, Range rows, bool add) {
  constexpr bool kCurved = kAct == Activation::Tanh;
  const int64_t n = rows.end - rows.begin;
  const Range all{0, n};
  const auto block = [&](auto m) { return rows_of(m, rows); };
  const Mat<const float> h1 = block(op.h1), h2 = block(op.h2), v1 = block(op.v1);
  const Mat<float> r = rows_of(own.r_x, all), x = rows_of(own.r_x, {n, 2 * n}), q = rows_of(own.q, all);
  const Mat<float> u1 = rows_of(own.u1_a1, all), a1 = rows_of(own.u1_a1, {n, 2 * n});
  const Mat<float> u2 = rows_of(own.u2_a2, all), a2 = rows_of(own.u2_a2, {n, 2 * n});
  scaled_gradient(op, rows, r);
  std::fill_n(own.m_f2.data, own.m_f2.size, 0.f);
  const auto to_u1_q_c1 = [&](int64_t i, int64_t j, Floats p, int64_t count) HWY_ATTR {
    const Floats h = load_part(h1.row(i) + j, count), v = load_part(v1.row(i) + j, count);
    store_part(times_slope<kAct>(v, h), u1.row(i) + j, count);
    store_part(times_slope<kAct>(p, h), q.row(i) + j, count);
    if (kCurved) store_part(times_curvature<kAct>(hn::Mul(p, v), h), a1.row(i) + j, count);
  };
  const auto to_u2_sum_a2 = [&](int64_t i, int64_t j, Floats m, int64_t count) HWY_ATTR {
    const Floats h = load_part(h2.row(i) + j, count), w3 = load_part(op.w3.data + j, count);
    float* sum = own.m_f2.data + j;
    store_part(times_slope<kAct>(w3, h), u2.row(i) + j, count);
    store_part(hn::Add(load_part(sum, count), times_slope<kAct>(m, h)), sum, count);
    if (kCurved) store_part(times_curvature<kAct>(hn::Mul(m, w3), h), a2.row(i) + j, count);
  };
  product_rows(r, panels.w1_t, all, sink_over(to_u1_q_c1, h1, v1));
  product_rows(q, panels.w2_t, all, sink_over(to_u2_sum_a2, h2));
  for (int64_t i = 0; i < own.m_f2.size; ++i) sums.d_b(place, 2)[i] += static_cast<double>(own.m_f2[i]);
  if constexpr (kCurved) {
    const auto to_a1 = [&](int64_t i, int64_t j, Floats v, int64_t count) HWY_ATTR {
      float* at = a1.row(i) + j;
      const Floats slope = times_slope<kAct>(v, load_part(h1.row(i) + j, count));
      store_part(hn::Add(slope, load_part(at, count)), at, count);
    };
    product_rows(a2, panels.w2, all, sink_over(to_a1, h1));
    for (int64_t i = 0; i < n; ++i) std::copy_n(op.x.row(rows.begin + i), x.cols, x.row(i));
    sums.add(place, 0, rows_of(own.u1_a1, {0, 2 * n}), {rows_of(own.r_x, {0, 2 * n})}, add);
    sums.add(place, 1, rows_of(own.u2_a2, {0, 2 * n}), {q, h1}, add);
    add_column_sums(a1.data, a1.stride, n, a1.cols, sums.d_b(place, 0));
    add_column_sums(a2.data, a2.stride, n, a2.cols, sums.d_b(place, 1));
  } else {
    sums.add(place, 0, u1, {r}, add);
    sums.add(place, 1, u2, {q}, add);
  }
}

template <Activation kAct>
void backward(Context& ctx, const GradientPenaltyBackward& op) {
  const char* name = "gradient_penalty_backward";
  const ScratchScope scope(ctx.scratch());
  const int64_t d = op.x.cols, m = op.w1.rows;
  const BackwardPanels panels(ctx, op, name);
  // d_w3 is a sum over rows alone, like a bias.
  const MlpGradient targets[] = {{op.d_w1, op.d_b1}, {op.d_w2, op.d_b2}, {{nullptr, m, 0}, op.d_w3}};
  SliceSums sums(ctx, op.x.rows, Tile::kBlockRows, targets, name);
  const int64_t floats = penalty_block_floats(d, m);
  float* memory = ctx.scratch().take<float>(ctx.threads() * floats, name);
  sums.run(ctx.pool(), [&](int64_t place, Range rows, bool add, int thread) HWY_ATTR {
    const BlockScratch own(memory + thread * floats, d, m);
    backward_block<kAct>(op, panels, own, sums, place, rows, add);
  });
  sums.add_up(ctx.pool());
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
