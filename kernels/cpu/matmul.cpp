// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The general product of the tape on the CPU.
//   a b, a b^T    rows_product, the right operand packed as it is or transposed
//   a^T b         columns_product
//   a^T b^T       (b a)^T: rows_product of b and a, each tile stored transposed

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/matmul.cpp"
// clang-format off
#include "hwy/foreach_target.h"
#include "gemm_columns-inl.h"
// clang-format on

#include "../backends.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

void matmul_simd(Context& ctx, const Matmul& op) {
  if (op.transpose_a && !op.transpose_b) return columns_product(ctx, {{op.a, op.b}}, op.c, {}, "matmul");
  const Mat<const float> left = op.transpose_a ? op.b : op.a, right = op.transpose_a ? op.a : op.b;
  const bool right_transposed = !op.transpose_a && op.transpose_b;
  const int64_t depth = right_transposed ? right.cols : right.rows;
  const int64_t cols = right_transposed ? right.rows : right.cols;
  const ScratchScope scope(ctx.scratch());
  float* packed = ctx.scratch().take<float>(depth * panel_count(cols) * Tile::kCols, "matmul");
  const Panels panels =
      pack_panels(ctx.pool(), right, right_transposed ? Operand::Transposed : Operand::Plain, packed);
  op.transpose_a ? rows_product(ctx.pool(), left, panels, StoreTransposed{op.c})
                 : rows_product(ctx.pool(), left, panels, StoreInto{op.c});
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pwdice::cpu {

HWY_EXPORT(matmul_simd);

void matmul(Context& ctx, const Matmul& op) { HWY_DYNAMIC_DISPATCH(matmul_simd)(ctx, op); }

}  // namespace pwdice::cpu
#endif
