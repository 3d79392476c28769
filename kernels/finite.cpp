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

// What is left to say when no input is to blame.
constexpr const char* kOverflow = "although every input is finite: a value on the way is beyond float";

// "w0 is inf in row 3, column 1", or nothing.
std::string first_not_finite(std::initializer_list<NamedTensor> tensors) {
  for (const auto& [name, values] : tensors) {
    if (values.stride == values.cols && is_finite(values.data, values.size())) continue;
    for (int64_t i = 0; i < values.rows; ++i) {
      if (is_finite(values.row(i), values.cols)) continue;
      int64_t j = 0;
      while (std::isfinite(values(i, j))) ++j;
      return values.cols == 1 ? format_message("{} is {} in row {}", {name, values(i, j), i})
                              : format_message("{} is {} in row {}, column {}", {name, values(i, j), i, j});
    }
  }
  return {};
}

}  // namespace

void check_finite(Context& ctx, const char* op, std::initializer_list<NamedTensor> inputs) {
  if (ctx.on_gpu()) return;
  const std::string bad = first_not_finite(inputs);
  if (!bad.empty()) fail(ErrorCode::NotFinite, "{}: {}", op, bad);
}

void check_outputs(Context& ctx, const char* op, std::initializer_list<NamedTensor> outputs,
                   std::initializer_list<NamedTensor> inputs) {
  if (ctx.on_gpu()) return;
  const std::string bad = first_not_finite(outputs);
  if (bad.empty()) return;
  check_finite(ctx, op, inputs);
  fail(ErrorCode::NotFinite, "{}: {} {}", op, bad, kOverflow);
}

void check_loss(Context& ctx, const char* op, Vec<const float> loss,
                std::initializer_list<NamedTensor> inputs) {
  if (ctx.on_gpu() || std::isfinite(loss[0])) return;
  check_finite(ctx, op, inputs);
  fail(ErrorCode::NotFinite, "{}: the loss is {} {}", op, loss[0], kOverflow);
}

void check_values(Context& ctx, const char* op, const char* output, Vec<const float> values,
                  std::initializer_list<NamedTensor> inputs) {
  if (ctx.on_gpu()) return;
  for (int64_t i = 0; i < values.size; ++i) {
    if (!std::isnan(values[i])) continue;
    check_finite(ctx, op, inputs);
    fail(ErrorCode::NotFinite, "{}: {} is {} in row {} {}", op, output, values[i], i, kOverflow);
  }
}

}  // namespace pwdice
