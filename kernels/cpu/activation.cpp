// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// d_pre = d_y f'(pre) on the CPU: one pass, a few rows to a chunk, limited by memory.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cpp"
// clang-format off
#include "hwy/foreach_target.h"
#include "activation-inl.h"
// clang-format on

#include "../backends.h"
#include "parallel.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

template <Activation kAct>
void backward(ThreadPool& pool, const ActivationBackward& op) {
  const int64_t n = op.y.rows, width = op.y.cols;
  const int64_t step = std::max<int64_t>(1, 16384 / width);
  pool.parallel_for(chunk_count(n, step), [&](int64_t chunk, int) HWY_ATTR {
    const Range rows = chunk_range(n, step, chunk);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = 0; j < width; j += kLanes) {
        const int64_t count = std::min(kLanes, width - j);
        const Floats d_y = load_part(op.d_y.row(i) + j, count);
        store_part(times_slope<kAct>(d_y, load_part(op.y.row(i) + j, count)), op.d_pre.row(i) + j, count);
      }
    }
  });
}

}  // namespace

void activation_backward_simd(Context& ctx, const ActivationBackward& op) {
  switch (op.act) {
    case Activation::None:
      return backward<Activation::None>(ctx.pool(), op);
    case Activation::Relu:
      return backward<Activation::Relu>(ctx.pool(), op);
    case Activation::Tanh:
      return backward<Activation::Tanh>(ctx.pool(), op);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pwdice::cpu {

HWY_EXPORT(activation_backward_simd);

void activation_backward(Context& ctx, const ActivationBackward& op) {
  HWY_DYNAMIC_DISPATCH(activation_backward_simd)(ctx, op);
}

}  // namespace pwdice::cpu
#endif
