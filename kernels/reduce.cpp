// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "reduce.h"

#include "backends.h"

namespace pwdice {
namespace {

int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

void check_one(const char* op, const char* name, Vec<float> result) {
  PWDICE_CHECK(result.size == 1, "{}: {} has {} values, expected 1", op, name, result.size);
}

}  // namespace

size_t reduce_scratch_bytes(int64_t n) {
  return Scratch::rounded(static_cast<size_t>(pieces(n, kReduceChunk)) * 2 * sizeof(double));
}

size_t column_reduce_scratch_bytes(int64_t rows, int64_t cols) {
  return Scratch::rounded(static_cast<size_t>(pieces(rows, kReduceRows) * cols) * sizeof(double)) +
         Scratch::rounded(static_cast<size_t>(cols) * sizeof(double));
}

void reduce_sum(Context& ctx, const Reduce& op) {
  check_one("reduce_sum", "result", op.result);
  ctx.on_gpu() ? cuda::reduce_sum(ctx, op) : cpu::reduce_sum(ctx, op);
}

void reduce_mean(Context& ctx, const Reduce& op) {
  check_one("reduce_mean", "result", op.result);
  PWDICE_CHECK(op.x.size > 0, "reduce_mean: x is empty");
  ctx.on_gpu() ? cuda::reduce_mean(ctx, op) : cpu::reduce_mean(ctx, op);
}

void reduce_max(Context& ctx, const Reduce& op) {
  check_one("reduce_max", "result", op.result);
  ctx.on_gpu() ? cuda::reduce_max(ctx, op) : cpu::reduce_max(ctx, op);
}

void reduce_logsumexp(Context& ctx, const Reduce& op) {
  check_one("reduce_logsumexp", "result", op.result);
  ctx.on_gpu() ? cuda::reduce_logsumexp(ctx, op) : cpu::reduce_logsumexp(ctx, op);
}

void reduce_norm(Context& ctx, const Reduce& op) {
  check_one("reduce_norm", "result", op.result);
  ctx.on_gpu() ? cuda::reduce_norm(ctx, op) : cpu::reduce_norm(ctx, op);
}

void dot(Context& ctx, const Dot& op) {
  check_one("dot", "result", op.result);
  PWDICE_CHECK(op.a.size == op.b.size, "dot: a has {} values, b has {}", op.a.size, op.b.size);
  ctx.on_gpu() ? cuda::dot(ctx, op) : cpu::dot(ctx, op);
}

void row_sum(Context& ctx, const RowSum& op) {
  PWDICE_CHECK(op.y.size == op.x.rows, "row_sum: y has {} values, x has {} rows", op.y.size, op.x.rows);
  ctx.on_gpu() ? cuda::row_sum(ctx, op) : cpu::row_sum(ctx, op);
}

void column_sum(Context& ctx, const ColumnSum& op) {
  PWDICE_CHECK(op.y.size == op.x.cols, "column_sum: y has {} values, x has {} columns", op.y.size, op.x.cols);
  ctx.on_gpu() ? cuda::column_sum(ctx, op) : cpu::column_sum(ctx, op);
}

void all_finite(Context& ctx, const AllFinite& op) {
  check_one("all_finite", "flag", op.flag);
  ctx.on_gpu() ? cuda::all_finite(ctx, op) : cpu::all_finite(ctx, op);
}

void column_moments(Context& ctx, const ColumnMoments& op) {
  PWDICE_CHECK(op.mean.size == op.x.cols && op.deviation.size == op.x.cols,
               "column_moments: mean and deviation have {} and {} values, x has {} columns", op.mean.size,
               op.deviation.size, op.x.cols);
  PWDICE_CHECK(op.x.rows >= (op.unbiased ? 2 : 1), "column_moments: x has {} rows, expected at least {}",
               op.x.rows, op.unbiased ? 2 : 1);
  ctx.on_gpu() ? cuda::column_moments(ctx, op) : cpu::column_moments(ctx, op);
}

}  // namespace pwdice
