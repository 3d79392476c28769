// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Linear layers on the CPU.
//   forward    y = f(x W^T + b)         W^T packed in panels per call; dot products where that does not pay
//   input      d_x = (d_pre W) f'(x)    W packed in panels
//   params     d_w = d_pre^T x          columns_product, which sums d_b on the way
// Cost  2 n in out flop each; packing touches in out floats (params: n (in + out)).

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
// clang-format off
#include "hwy/foreach_target.h"
#include "gemm_columns-inl.h"
#include "linear-inl.h"
// clang-format on

#include "../backends.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

void linear_forward_simd(Context& ctx, const LinearForward& op) {
  with_activation(op.act, [&](auto act) HWY_ATTR {
    const BiasAndActivation<act()> sink{op.b, op.y};
    if (op.w.rows <= kFewOutputs || op.x.rows <= kFewRows) {
      const int64_t step = std::max<int64_t>(1, 65536 / op.w.size());
      ctx.pool().parallel_for(chunk_count(op.x.rows, step), [&](int64_t chunk, int) HWY_ATTR {
        dot_forward_rows(op.x, op.w, chunk_range(op.x.rows, step, chunk), sink);
      });
      return;
    }
    const ScratchScope scope(ctx.scratch());
    const int64_t floats = op.w.cols * panel_count(op.w.rows) * Tile::kCols;
    float* packed = ctx.scratch().take<float>(floats, "linear_forward");
    rows_product(ctx.pool(), op.x, pack_panels(ctx.pool(), op.w, Operand::Transposed, packed), sink);
  });
}

void linear_backward_input_simd(Context& ctx, const LinearBackwardInput& op) {
  with_activation(op.x_act, [&](auto act) HWY_ATTR {
    const ScratchScope scope(ctx.scratch());
    const int64_t floats = op.w.rows * panel_count(op.w.cols) * Tile::kCols;
    float* packed = ctx.scratch().take<float>(floats, "linear_backward_input");
    const Panels panels = pack_panels(ctx.pool(), op.w, Operand::Plain, packed);
    rows_product(ctx.pool(), op.d_pre, panels, TimesSlope<act()>{op.x, op.d_x});
  });
}

void linear_backward_params_simd(Context& ctx, const LinearBackwardParams& op) {
  columns_product(ctx, {{op.d_pre, op.x, true}}, op.d_w, op.d_b, "linear_backward_params");
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pwdice::cpu {

HWY_EXPORT(linear_forward_simd);
HWY_EXPORT(linear_backward_input_simd);
HWY_EXPORT(linear_backward_params_simd);

void linear_forward(Context& ctx, const LinearForward& op) {
  HWY_DYNAMIC_DISPATCH(linear_forward_simd)(ctx, op);
}
void linear_backward_input(Context& ctx, const LinearBackwardInput& op) {
  HWY_DYNAMIC_DISPATCH(linear_backward_input_simd)(ctx, op);
}
void linear_backward_params(Context& ctx, const LinearBackwardParams& op) {
  HWY_DYNAMIC_DISPATCH(linear_backward_params_simd)(ctx, op);
}

}  // namespace pwdice::cpu
#endif
