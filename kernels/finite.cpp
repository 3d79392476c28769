// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "finite.h"

#include <bit>
#include <cmath>

namespace pwdice {
namespace {

// Without a branch and in integers, so that a compiler makes vectors of it.
bool is_finite(const float* values, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones: infinite or NaN
  uint32_t bad = 0;
  for (int64_t i = 0; i < count; ++i) bad |= (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent;
  return bad == 0;
}

}  // namespace

void check_finite(Context& ctx, const char* op, std::initializer_list<NamedInput> inputs) {
  if (ctx.on_gpu()) return;
  for (const NamedInput& input : inputs) {
    const bool is_whole = input.values.stride == input.values.cols;
    if (is_whole && is_finite(input.values.data, input.values.size())) continue;
    for (int64_t i = 0; i < input.values.rows; ++i) {
      if (is_finite(input.values.row(i), input.values.cols)) continue;
      for (int64_t j = 0; j < input.values.cols; ++j) {
        const float value = input.values(i, j);
        if (std::isfinite(value)) continue;
        if (input.values.cols == 1)
          fail(ErrorCode::NotFinite, "{}: {} is {} in row {}", op, input.name, value, i);
        fail(ErrorCode::NotFinite, "{}: {} is {} in row {}, column {}", op, input.name, value, i, j);
      }
    }
  }
}

void check_loss(Context& ctx, const char* op, Vec<const float> loss,
                std::initializer_list<NamedInput> inputs) {
  if (ctx.on_gpu() || std::isfinite(loss[0])) return;
  check_finite(ctx, op, inputs);
  fail(ErrorCode::NotFinite, "{}: the loss is {} although every input is finite", op, loss[0]);
}

void check_values(Context& ctx, const char* op, const char* output, Vec<const float> values,
                  std::initializer_list<NamedInput> inputs) {
  if (ctx.on_gpu()) return;
  for (int64_t i = 0; i < values.size; ++i) {
    if (!std::isnan(values[i])) continue;
    check_finite(ctx, op, inputs);
    fail(ErrorCode::NotFinite, "{}: {} is {} in row {} although every input is finite", op, output, values[i],
         i);
  }
}

}  // namespace pwdice
