// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The tape's small ops. One thread, four elements; every output has one owner.
#include "launch.cuh"
#include "math.cuh"

namespace pwdice::cuda {
namespace {

__device__ float apply(Unary f, float x) {
  switch (f) {
    case Unary::Negate:
      return -x;
    case Unary::Square:
      return x * x;
    case Unary::Sqrt:
      return sqrtf(x);
    case Unary::Reciprocal:
      return 1.f / x;
    case Unary::Exp:
      return expf(x);
    case Unary::Log:
      return logf(x);
    case Unary::Tanh:
      return tanhf(x);
    case Unary::Relu:
      return relu(x);
    case Unary::Step:
      return step(x);
    case Unary::Softplus:
      return softplus(x);
    case Unary::Sigmoid:
      return sigmoid(x);
  }
  return x;
}

__device__ float apply(Binary f, float a, float b) {
  switch (f) {
    case Binary::Add:
      return a + b;
    case Binary::Subtract:
      return a - b;
    case Binary::Multiply:
      return a * b;
    case Binary::Divide:
      return a / b;
  }
  return a;
}

__global__ void __launch_bounds__(Each::kThreads) unary_map_kernel(UnaryMap op) {
  for_each_item(op.y.size, [&](int64_t i) { op.y[i] = apply(op.f, op.x[i]); });
}

__global__ void __launch_bounds__(Each::kThreads) binary_map_kernel(BinaryMap op) {
  for_each_item(op.y.size, [&](int64_t i) { op.y[i] = apply(op.f, op.a[i], op.b[i]); });
}

__global__ void __launch_bounds__(Each::kThreads) affine_kernel(Affine op) {
  for_each_item(op.y.size, [&](int64_t i) { op.y[i] = op.scale * op.x[i] + op.shift; });
}

__global__ void __launch_bounds__(Each::kThreads) accumulate_kernel(Accumulate op) {
  for_each_item(op.y.size, [&](int64_t i) { op.y[i] += op.scale * op.x[i]; });
}

__global__ void __launch_bounds__(Each::kThreads) scale_by_kernel(ScaleBy op) {
  for_each_item(op.y.size, [&](int64_t i) { op.y[i] = op.s[0] * op.x[i]; });
}

__global__ void __launch_bounds__(Each::kThreads) mix_rows_kernel(MixRows op) {
  for_each_element(op.y.rows, op.y.cols, [&](int64_t i, int64_t j) {
    op.y(i, j) = op.u[i] * op.a(i, j) + (1.f - op.u[i]) * op.b(i, j);
  });
}

__global__ void __launch_bounds__(Each::kThreads) scale_rows_kernel(ScaleRows op) {
  for_each_element(op.y.rows, op.y.cols, [&](int64_t i, int64_t j) { op.y(i, j) = op.x(i, j) * op.s[i]; });
}

__global__ void __launch_bounds__(Each::kThreads) broadcast_columns_kernel(BroadcastColumns op) {
  for_each_element(op.y.rows, op.y.cols, [&](int64_t i, int64_t j) { op.y(i, j) = op.s[j]; });
}

__global__ void __launch_bounds__(Each::kThreads) fill_kernel(Vec<float> values, float value) {
  for_each_item(values.size, [&](int64_t i) { values[i] = value; });
}

}  // namespace

void unary_map(Context& ctx, const UnaryMap& op) {
  if (op.y.size == 0) return;
  const Launch on(ctx, "unary_map");
  unary_map_kernel<<<on.grid(op.y.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void binary_map(Context& ctx, const BinaryMap& op) {
  if (op.y.size == 0) return;
  const Launch on(ctx, "binary_map");
  binary_map_kernel<<<on.grid(op.y.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void affine(Context& ctx, const Affine& op) {
  if (op.y.size == 0) return;
  const Launch on(ctx, "affine");
  affine_kernel<<<on.grid(op.y.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void accumulate(Context& ctx, const Accumulate& op) {
  if (op.y.size == 0) return;
  const Launch on(ctx, "accumulate");
  accumulate_kernel<<<on.grid(op.y.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void scale_by(Context& ctx, const ScaleBy& op) {
  if (op.y.size == 0) return;
  const Launch on(ctx, "scale_by");
  scale_by_kernel<<<on.grid(op.y.size), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void mix_rows(Context& ctx, const MixRows& op) {
  if (op.y.size() == 0) return;
  const Launch on(ctx, "mix_rows");
  mix_rows_kernel<<<on.grid(op.y.size()), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void scale_rows(Context& ctx, const ScaleRows& op) {
  if (op.y.size() == 0) return;
  const Launch on(ctx, "scale_rows");
  scale_rows_kernel<<<on.grid(op.y.size()), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void broadcast_columns(Context& ctx, const BroadcastColumns& op) {
  if (op.y.size() == 0) return;
  const Launch on(ctx, "broadcast_columns");
  broadcast_columns_kernel<<<on.grid(op.y.size()), Each::kThreads, 0, on.stream()>>>(op);
  on.check();
}

void fill(Context& ctx, Vec<float> values, float value) {
  if (values.size == 0) return;
  const Launch on(ctx, "fill");
  fill_kernel<<<on.grid(values.size), Each::kThreads, 0, on.stream()>>>(values, value);
  on.check();
}

}  // namespace pwdice::cuda
