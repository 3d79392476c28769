// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "row_norm.h"

#include "backends.h"

namespace pwdice {
namespace {

void check(const char* op, const char* name, Mat<const float> x, Mat<const float> like, int64_t norms) {
  PWDICE_CHECK(x.rows == like.rows && x.cols == like.cols, "{}: {} is {} x {}, expected {} x {}", op, name,
               x.rows, x.cols, like.rows, like.cols);
  PWDICE_CHECK(norms == like.rows, "{}: inv_norm has {} values, expected {}", op, norms, like.rows);
}

}  // namespace

void row_norm_forward(Context& ctx, const RowNormForward& op) {
  check("row_norm_forward", "z", op.z, op.v, op.inv_norm.size);
  ctx.on_gpu() ? cuda::row_norm_forward(ctx, op) : cpu::row_norm_forward(ctx, op);
}

void row_norm_backward(Context& ctx, const RowNormBackward& op) {
  check("row_norm_backward", "d_z", op.d_z, op.z, op.inv_norm.size);
  check("row_norm_backward", "d_v", op.d_v, op.z, op.inv_norm.size);
  ctx.on_gpu() ? cuda::row_norm_backward(ctx, op) : cpu::row_norm_backward(ctx, op);
}

}  // namespace pwdice
