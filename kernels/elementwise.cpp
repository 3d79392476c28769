// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "elementwise.h"

#include "backends.h"
#include "check.h"

namespace pwdice {
namespace {

void check_sizes(const char* op, const char* name, int64_t size, int64_t expected) {
  PWDICE_CHECK(size == expected, "{}: {} has {} values, y has {}", op, name, size, expected);
}

void check_shape(const char* op, const char* name, Mat<const float> x, Mat<float> y) {
  PWDICE_CHECK(x.rows == y.rows && x.cols == y.cols, "{}: {} is {} x {}, y is {} x {}", op, name, x.rows,
               x.cols, y.rows, y.cols);
}

}  // namespace

void unary_map(Context& ctx, const UnaryMap& op) {
  check_sizes("unary_map", "x", op.x.size, op.y.size);
  check_choice("unary_map", "f", op.f, Unary::Sigmoid);
  ctx.on_gpu() ? cuda::unary_map(ctx, op) : cpu::unary_map(ctx, op);
}

void binary_map(Context& ctx, const BinaryMap& op) {
  check_sizes("binary_map", "a", op.a.size, op.y.size);
  check_sizes("binary_map", "b", op.b.size, op.y.size);
  check_choice("binary_map", "f", op.f, Binary::Divide);
  ctx.on_gpu() ? cuda::binary_map(ctx, op) : cpu::binary_map(ctx, op);
}

void affine(Context& ctx, const Affine& op) {
  check_sizes("affine", "x", op.x.size, op.y.size);
  ctx.on_gpu() ? cuda::affine(ctx, op) : cpu::affine(ctx, op);
}

void accumulate(Context& ctx, const Accumulate& op) {
  check_sizes("accumulate", "x", op.x.size, op.y.size);
  ctx.on_gpu() ? cuda::accumulate(ctx, op) : cpu::accumulate(ctx, op);
}

void scale_by(Context& ctx, const ScaleBy& op) {
  check_sizes("scale_by", "x", op.x.size, op.y.size);
  PWDICE_CHECK(op.s.size == 1, "scale_by: s has {} values, expected 1", op.s.size);
  ctx.on_gpu() ? cuda::scale_by(ctx, op) : cpu::scale_by(ctx, op);
}

void mix_rows(Context& ctx, const MixRows& op) {
  check_shape("mix_rows", "a", op.a, op.y);
  check_shape("mix_rows", "b", op.b, op.y);
  PWDICE_CHECK(op.u.size == op.y.rows, "mix_rows: u has {} values, y has {} rows", op.u.size, op.y.rows);
  ctx.on_gpu() ? cuda::mix_rows(ctx, op) : cpu::mix_rows(ctx, op);
}

void scale_rows(Context& ctx, const ScaleRows& op) {
  check_shape("scale_rows", "x", op.x, op.y);
  PWDICE_CHECK(op.s.size == op.y.rows, "scale_rows: s has {} values, y has {} rows", op.s.size, op.y.rows);
  ctx.on_gpu() ? cuda::scale_rows(ctx, op) : cpu::scale_rows(ctx, op);
}

void broadcast_columns(Context& ctx, const BroadcastColumns& op) {
  PWDICE_CHECK(op.s.size == op.y.cols, "broadcast_columns: s has {} values, y has {} columns", op.s.size,
               op.y.cols);
  ctx.on_gpu() ? cuda::broadcast_columns(ctx, op) : cpu::broadcast_columns(ctx, op);
}

}  // namespace pwdice
