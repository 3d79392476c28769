// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Layers y = f(x W^T + b). Wide ones are CUTLASS products with the bias, the activation or its derivative in
// the epilogue; heads of up to 8 outputs would fill an eighth of a 64-wide tile and have their own kernels:
//   forward        a warp owns a row of x, reads it once and multiplies it with every row of W
//   input          a thread owns an element of d_x: at most 8 products
//   parameters     a thread owns a column of x, 256 of them a block, which strides over chunks of rows;
//                  chunks are merged in order
// Cost     heads are bound by reading x once.
#include <algorithm>

#include "gemm.h"
#include "linear_head.h"
#include "math.cuh"

namespace pwdice::cuda {
namespace {

constexpr int64_t kHead = LinearHead::kOutputs;

}  // namespace

void linear_forward(Context& ctx, const LinearForward& op) {
  if (op.y.size() == 0) return;
  const Launch on(ctx, "linear_forward");
  if (op.y.cols <= kHead) return head_forward(on, op);
  const ScratchScope scope(ctx.scratch());
  gemm(on, {false, true, op.x.rows, op.w.rows, op.x.cols, op.x.data, op.x.stride, op.w.data, op.w.stride,
            op.y.data, op.y.stride, 1.f, Epilogue::Activate, op.act, op.b.data, 0});
}

void linear_backward_input(Context& ctx, const LinearBackwardInput& op) {
  if (op.d_x.size() == 0) return;
  const Launch on(ctx, "linear_backward_input");
  if (op.d_pre.cols <= kHead) return head_backward_input(on, op);
  const ScratchScope scope(ctx.scratch());
  const bool plain = op.x_act == Activation::None;
  gemm(on, {false, false, op.d_pre.rows, op.w.cols, op.d_pre.cols, op.d_pre.data, op.d_pre.stride, op.w.data,
            op.w.stride, op.d_x.data, op.d_x.stride, 1.f, plain ? Epilogue::Store : Epilogue::Differentiate,
            op.x_act, op.x.data, op.x.stride});
}

void linear_backward_params(Context& ctx, const LinearBackwardParams& op) {
  const Launch on(ctx, "linear_backward_params");
  if (op.d_pre.cols == 0) return;
  if (op.d_pre.cols <= kHead) return head_backward_params(on, op);
  {
    const ScratchScope scope(ctx.scratch());
    gemm(on, {true, false, op.d_pre.cols, op.x.cols, op.x.rows, op.d_pre.data, op.d_pre.stride, op.x.data,
              op.x.stride, op.d_w.data, op.d_w.stride});
  }
  cuda::column_sum(ctx, {op.d_pre, op.d_b});
}

size_t linear_scratch_bytes(int64_t n, int64_t in, int64_t out) {
  const size_t heads = out <= kHead ? LinearHead::scratch_bytes(n, in, out) : 0;
  return std::max({heads, gemm_scratch_bytes(n, out, in), gemm_scratch_bytes(n, in, out),
                   gemm_scratch_bytes(out, in, n), column_reduce_scratch_bytes(n, out)});
}

}  // namespace pwdice::cuda
