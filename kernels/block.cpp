// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "block.h"

#include "backends.h"

namespace pwdice {
namespace {

void check_shapes(const char* op, const Mat<const float>& from, const Mat<float>& to) {
  PWDICE_CHECK(from.rows == to.rows && from.cols == to.cols, "{}: from is {} x {}, to is {} x {}", op,
               from.rows, from.cols, to.rows, to.cols);
  PWDICE_CHECK(from.stride >= from.cols && to.stride >= to.cols, "{}: {} columns with row strides {} and {}",
               op, from.cols, from.stride, to.stride);
}

}  // namespace

void copy_block(Context& ctx, const CopyBlock& op) {
  check_shapes("copy_block", op.from, op.to);
  if (op.from.size() == 0) return;
  ctx.on_gpu() ? cuda::copy_block(ctx, op) : cpu::copy_block(ctx, op);
}

void add_block(Context& ctx, const AddBlock& op) {
  check_shapes("add_block", op.from, op.to);
  if (op.from.size() == 0) return;
  ctx.on_gpu() ? cuda::add_block(ctx, op) : cpu::add_block(ctx, op);
}

}  // namespace pwdice
