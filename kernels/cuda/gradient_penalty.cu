// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Gradient penalty P = lambda/n sum_k (|g_k| - 1)^2 of a two-layer network and its second-order gradient.
//   value      h1 = f(x W1^T + b1)  h2 = f(h1 W2^T + b2)  u2 = f2 w3  v1 = u2 W2  u1 = f1 v1  g = u1 W1
//   gradient   r = 2 lambda/n (|g| - 1) g/|g|   p = r W1^T   e1 = p v1   q = p f1   m = q W2^T
//              a2 = f''(h2) m w3                a1 = f1 (a2 W2) + f''(h1) e1
//              d_W1 = u1^T r + a1^T x           d_W2 = u2^T q + a2^T h1
//              d_w3 = sum m f2                  d_b1 = sum a1                  d_b2 = sum a2
// with f1 = f'(h1), f2 = f'(h2). For ReLU f'' = 0, so the a terms are not computed.
// Work     products by gemm.h; between them one elementwise kernel each, which writes all that can be had
//          from what it reads. Every output has one owner.
// Cost     2 n m (3 m + 3 d) flop for ReLU, 2 n m (6 m + 5 d) for tanh, whose f'' is not 0.
#include <algorithm>

#include "gemm.h"
#include "math.cuh"
#include "row_norm.cuh"

namespace pwdice::cuda {
namespace {

// u = f'(h) v, v a matrix like h, or one row for all.
__global__ void __launch_bounds__(Each::kThreads)
    times_derivative_kernel(Mat<const float> h, Activation act, Mat<const float> v, Mat<float> u) {
  for_each_element(h.rows, h.cols, [&](int64_t i, int64_t j) { u(i, j) = through(act, h(i, j), v(i, j)); });
}
__global__ void __launch_bounds__(Each::kThreads)
    times_derivative_row_kernel(Mat<const float> h, Activation act, Vec<const float> v, Mat<float> u) {
  for_each_element(h.rows, h.cols, [&](int64_t i, int64_t j) { u(i, j) = through(act, h(i, j), v[j]); });
}

__global__ void __launch_bounds__(RowPerWarp::kThreads) norm_kernel(Mat<const float> g, Vec<float> norm) {
  const int64_t i = RowPerWarp::row();
  if (i >= g.rows) return;
  const RowLength length = row_length(g.row(i), g.cols, RowPerWarp::lane());
  if (RowPerWarp::lane() == 0) norm[i] = length.largest == 0.f ? 0.f : length.largest * length.root;
}

struct LoadPenalty {
  Vec<const float> norm;
  __device__ float operator()(int64_t i) const { return (norm[i] - 1.f) * (norm[i] - 1.f); }
};
struct StoreLoss {
  double scale;
  Vec<float> loss;
  __device__ void operator()(double sum) const { loss[0] = static_cast<float>(scale * sum); }
};

// g becomes r.
__global__ void __launch_bounds__(Each::kThreads)
    penalty_slope_kernel(Vec<const float> norm, float factor, Mat<float> g) {
  for_each_element(g.rows, g.cols, [&](int64_t i, int64_t j) {
    g(i, j) = norm[i] == 0.f ? 0.f : factor * (norm[i] - 1.f) * (g(i, j) / norm[i]);
  });
}

// q = p f1, and v1 becomes e1 = p v1.
__global__ void __launch_bounds__(Each::kThreads)
    first_layer_kernel(Mat<const float> h1, Mat<const float> p, Activation act, Mat<float> v1, Mat<float> q) {
  for_each_element(h1.rows, h1.cols, [&](int64_t i, int64_t j) {
    q(i, j) = through(act, h1(i, j), p(i, j));
    v1(i, j) *= p(i, j);
  });
}

// h2 becomes a2 = f''(h2) m w3, and m becomes m f2.
__global__ void __launch_bounds__(Each::kThreads)
    second_layer_kernel(Vec<const float> w3, Activation act, Mat<float> m, Mat<float> h2) {
  for_each_element(h2.rows, h2.cols, [&](int64_t i, int64_t j) {
    const float h = h2(i, j), value = m(i, j);
    h2(i, j) = second_derivative(act, h) * (value * w3[j]);
    m(i, j) = through(act, h, value);
  });
}

// a1 = f1 t + f''(h1) e1
__global__ void __launch_bounds__(Each::kThreads)
    first_curvature_kernel(Mat<const float> h1, Activation act, Mat<const float> t, Mat<const float> e1,
                           Mat<float> a1) {
  for_each_element(h1.rows, h1.cols, [&](int64_t i, int64_t j) {
    const float h = h1(i, j);
    a1(i, j) = derivative(act, h) * t(i, j) + second_derivative(act, h) * e1(i, j);
  });
}

Mat<float> take(const Launch& on, int64_t rows, int64_t cols) {
  return {on.scratch<float>(rows * cols), rows, cols};
}

// c = a b^T, a b and a^T b
void times_transposed(const Launch& on, Mat<const float> a, Mat<const float> b, Mat<float> c) {
  gemm(on, {false, true, a.rows, b.rows, a.cols, a.data, a.stride, b.data, b.stride, c.data, c.stride});
}
void times(const Launch& on, Mat<const float> a, Mat<const float> b, Mat<float> c) {
  gemm(on, {false, false, a.rows, b.cols, a.cols, a.data, a.stride, b.data, b.stride, c.data, c.stride});
}
void transposed_times(const Launch& on, Mat<const float> a, Mat<const float> b, Mat<float> c,
                      Epilogue epilogue) {
  gemm(on, {true, false, a.cols, b.cols, a.rows, a.data, a.stride, b.data, b.stride, c.data, c.stride, 1.f,
            epilogue});
}
void layer(const Launch& on, Mat<const float> x, Mat<const float> w, Vec<const float> b, Activation act,
           Mat<float> y) {
  gemm(on, {false, true, x.rows, w.rows, x.cols, x.data, x.stride, w.data, w.stride, y.data, y.stride, 1.f,
            Epilogue::Activate, act, b.data, 0});
}

template <class... Arguments, class... Parameters>
void launch_each(const Launch& on, void (*kernel)(Parameters...), int64_t size,
                 const Arguments&... arguments) {
  kernel<<<on.grid(size), Each::kThreads, 0, on.stream()>>>(arguments...);
  on.check();
}

// Matrices (n, m), each until it is overwritten by what stands behind it.
struct Hidden {
  Mat<float> h1, h2_a2, u2, v1_e1, u1, q_a1, m;

  Hidden(const Launch& on, int64_t rows, int64_t cols)
      : h1(take(on, rows, cols)),
        h2_a2(take(on, rows, cols)),
        u2(take(on, rows, cols)),
        v1_e1(take(on, rows, cols)),
        u1(take(on, rows, cols)),
        q_a1(take(on, rows, cols)),
        m(take(on, rows, cols)) {}
};

// h1, h2, u2, v1, u1; g and the loss.
void penalty_value(const Launch& on, const GradientPenalty& op, const Hidden& hidden, Mat<float> g) {
  const auto& [h1, h2, u2, v1, u1, q, m] = hidden;
  const int64_t n = op.x.rows;
  layer(on, op.x, op.w1, op.b1, op.act, h1);
  layer(on, h1, op.w2, op.b2, op.act, h2);
  launch_each(on, times_derivative_row_kernel, h2.size(), h2, op.act, op.w3, u2);
  times(on, u2, op.w2, v1);
  launch_each(on, times_derivative_kernel, h1.size(), h1, op.act, v1, u1);
  times(on, u1, op.w1, g);
  norm_kernel<<<on.grid(n, RowPerWarp::kRows), RowPerWarp::kThreads, 0, on.stream()>>>(g, op.norm);
  on.check();
  fold<SumFold>(on, n, LoadPenalty{op.norm},
                StoreLoss{static_cast<double>(op.lambda) / static_cast<double>(n), op.loss});
}

// g becomes r, h2 a2, v1 e1, q a1.
void penalty_gradient(const Launch& on, Context& ctx, const GradientPenalty& op, const Hidden& hidden,
                      Mat<float> r) {
  const auto& [h1, a2, u2, e1, u1, q, m] = hidden;
  const int64_t size = h1.size();
  launch_each(on, penalty_slope_kernel, r.size(), op.norm, 2.f * op.lambda / static_cast<float>(op.x.rows),
              r);
  times_transposed(on, r, op.w1, m);  // p, for the next kernel alone
  launch_each(on, first_layer_kernel, size, h1, m, op.act, e1, q);
  times_transposed(on, q, op.w2, m);
  launch_each(on, second_layer_kernel, size, op.w3, op.act, m, a2);
  cuda::column_sum(ctx, {m, op.d_w3});
  transposed_times(on, u2, q, op.d_w2, Epilogue::Store);
  transposed_times(on, u1, r, op.d_w1, Epilogue::Store);
  if (op.act != Activation::Tanh) {
    cuda::fill(ctx, op.d_b1, 0.f);
    return cuda::fill(ctx, op.d_b2, 0.f);
  }
  cuda::column_sum(ctx, {a2, op.d_b2});
  transposed_times(on, a2, h1, op.d_w2, Epilogue::Add);
  times(on, a2, op.w2, m);
  launch_each(on, first_curvature_kernel, size, h1, op.act, m, e1, q);
  transposed_times(on, q, op.x, op.d_w1, Epilogue::Add);
  cuda::column_sum(ctx, {q, op.d_b1});
}

}  // namespace

size_t gradient_penalty_scratch_bytes(int64_t n, int64_t d, int64_t m) {
  const auto matrix = [](int64_t rows, int64_t cols) {
    return Scratch::rounded(static_cast<size_t>(rows * cols) * sizeof(float));
  };
  const size_t product = std::max({gemm_scratch_bytes(n, m, std::max(m, d)), gemm_scratch_bytes(n, d, m),
                                   gemm_scratch_bytes(m, m, n), gemm_scratch_bytes(m, d, n),
                                   column_reduce_scratch_bytes(n, m), reduce_scratch_bytes(n)});
  return matrix(n, d) + 7 * matrix(n, m) + product;
}

void gradient_penalty(Context& ctx, const GradientPenalty& op) {
  const Launch on(ctx, "gradient_penalty");
  const ScratchScope scope(ctx.scratch());
  const Hidden hidden(on, op.x.rows, op.w1.rows);
  const Mat<float> g = take(on, op.x.rows, op.x.cols);
  penalty_value(on, op, hidden, g);
  penalty_gradient(on, ctx, op, hidden, g);
}

}  // namespace pwdice::cuda
