// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "mlp.h"

#include <algorithm>

#include "backends.h"
#include "check.h"
#include "cpu/mlp.h"

namespace pwdice {
namespace {

void check_layers(const char* op, Mat<const float> x, std::span<const MlpLayer> layers) {
  const auto count = static_cast<int64_t>(layers.size());
  PWDICE_CHECK(count >= 1 && count <= kMlpMaxLayers, "{}: {} layers, expected 1 to {}", op, count,
               kMlpMaxLayers);
  int64_t in = x.cols;
  check_matrix(op, "x", x, x.rows, in);
  for (const MlpLayer& layer : layers) {
    const int64_t out = layer.w.rows;
    PWDICE_CHECK(in > 0 && out > 0, "{}: a layer with {} inputs and {} outputs computes nothing", op, in,
                 out);
    PWDICE_CHECK(layer.w.cols == in, "{}: w expects {} columns, its input has {}", op, layer.w.cols, in);
    check_matrix(op, "w", layer.w, out, in);
    check_vector(op, "b", layer.b, out);
    check_matrix(op, "y", layer.y, x.rows, out);
    check_choice(op, "act", layer.act, Activation::Tanh);
    for (const MlpLayer& other : layers) {  // rows at another stride would be other layers' rows
      PWDICE_CHECK(other.y.data != layer.y.data || other.y.stride == layer.y.stride || x.rows == 0,
                   "{}: layers share memory at strides {} and {}", op, other.y.stride, layer.y.stride);
    }
    in = out;
  }
}

}  // namespace

int64_t mlp_stride(int64_t width) {
  constexpr int64_t kLine = 16;  // floats
  const int64_t lines = (width + kLine - 1) / kLine;
  return lines < 8 ? width : (lines | 1) * kLine;  // an odd number of lines visits every set
}

void mlp_forward(Context& ctx, const MlpForward& op) {
  check_layers("mlp_forward", op.x, op.layers);
  if (op.x.rows == 0) return;
  ctx.on_gpu() ? cuda::mlp_forward(ctx, op) : cpu::mlp_forward(ctx, op);
}

void mlp_backward(Context& ctx, const MlpBackward& op) {
  const char* name = "mlp_backward";
  check_layers(name, op.x, op.layers);
  check_matrix(name, "d_pre", op.d_pre, op.x.rows, op.layers.back().w.rows);
  PWDICE_CHECK(op.gradients.size() == op.layers.size(), "{}: {} gradients for {} layers", name,
               op.gradients.size(), op.layers.size());
  for (size_t l = 0; l < op.layers.size(); ++l) {
    check_matrix(name, "d_w", op.gradients[l].d_w, op.layers[l].w.rows, op.layers[l].w.cols);
    check_vector(name, "d_b", op.gradients[l].d_b, op.layers[l].w.rows);
  }
  if (op.d_x.data != nullptr) check_matrix(name, "d_x", op.d_x, op.x.rows, op.x.cols);
  ctx.on_gpu() ? cuda::mlp_backward(ctx, op) : cpu::mlp_backward(ctx, op);
}

size_t mlp_scratch_bytes(int64_t n, std::span<const int64_t> sizes) {
  size_t bytes = cpu::mlp_scratch_bytes(n, sizes);
  for (size_t l = 0; l + 1 < sizes.size(); ++l) {
    bytes = std::max(bytes, cuda::linear_scratch_bytes(n, sizes[l], sizes[l + 1]));
  }
  return bytes;
}

}  // namespace pwdice
