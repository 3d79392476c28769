// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "adam.h"

#include <cmath>

#include "backends.h"

namespace pwdice {
namespace {

void check_size(const char* op, const char* name, int64_t size, int64_t expected) {
  PWDICE_CHECK(size == expected, "{}: {} has {} values, expected {}", op, name, size, expected);
}

}  // namespace

void adam(Context& ctx, const Adam& op) {
  PWDICE_CHECK(op.beta1 >= 0.f && op.beta1 < 1.f && op.beta2 >= 0.f && op.beta2 < 1.f,
               "adam: the betas are {} and {}, expected 0 to 1, 1 excluded", op.beta1, op.beta2);
  PWDICE_CHECK(op.eps > 0.f, "adam: eps is {}, expected a positive number", op.eps);
  PWDICE_CHECK(op.weight_decay >= 0.f && std::isfinite(op.weight_decay),
               "adam: weight_decay is {}, expected 0 or a positive number", op.weight_decay);
  check_size("adam", "lr", op.lr.size, 1);
  check_size("adam", "scale", op.scale.size, 1);
  check_size("adam", "ok", op.ok.size, 1);
  check_size("adam", "t", op.t.size, 1);
  check_size("adam", "grad", op.grad.size, op.param.size);
  check_size("adam", "m", op.m.size, op.param.size);
  check_size("adam", "v", op.v.size, op.param.size);
  ctx.on_gpu() ? cuda::adam(ctx, op) : cpu::adam(ctx, op);
}

void clip_scale(Context& ctx, const ClipScale& op) {
  PWDICE_CHECK(op.max_norm > 0.f, "clip_scale: max_norm is {}, expected a positive number", op.max_norm);
  check_size("clip_scale", "norm", op.norm.size, 1);
  check_size("clip_scale", "scale", op.scale.size, 1);
  ctx.on_gpu() ? cuda::clip_scale(ctx, op) : cpu::clip_scale(ctx, op);
}

void ema(Context& ctx, const Ema& op) {
  PWDICE_CHECK(op.decay >= 0.f && op.decay <= 1.f, "ema: decay is {}, expected 0 to 1", op.decay);
  check_size("ema", "ok", op.ok.size, 1);
  check_size("ema", "average", op.average.size, op.param.size);
  ctx.on_gpu() ? cuda::ema(ctx, op) : cpu::ema(ctx, op);
}

}  // namespace pwdice
