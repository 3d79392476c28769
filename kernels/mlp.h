// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <span>

#include "activation.h"

namespace pwdice {

// A network y_l = f_l(y_(l-1) W_l^T + b_l), y_0 = x, as one op: a backend may take a few rows through all
// layers while they are in its cache.
inline constexpr int64_t kMlpMaxLayers = 8;

// The distance between the rows of a hidden layer, at least `width`. With a power of two all rows would fall
// into a few sets of a cache, and a product that runs down a column would wait for memory.
int64_t mlp_stride(int64_t width);

struct MlpLayer {
  Mat<const float> w;  // (out, in), in = out of the layer before
  Vec<const float> b;  // (out)
  Activation act;
  Mat<float> y;  // forward: out (n, out); layers that do not touch may share memory and stride
};
struct MlpForward {
  Mat<const float> x;                // (n, in)
  std::span<const MlpLayer> layers;  // the first to the last
};
void mlp_forward(Context& ctx, const MlpForward& op);

// d_W_l = d_l^T y_(l-1)     d_b_l = sum over rows of d_l     d_(l-1) = (d_l W_l) f'(y_(l-1))
struct MlpGradient {
  Mat<float> d_w;  // out (out, in)
  Vec<float> d_b;  // out (out)
};
struct MlpBackward {
  Mat<const float> x;
  std::span<const MlpLayer> layers;        // y of all but the last is used up: d may take its place
  Mat<const float> d_pre;                  // (n, out) gradient before the last activation
  std::span<const MlpGradient> gradients;  // one per layer
  Mat<float> d_x;                          // out (n, in), or no data: not wanted
};
void mlp_backward(Context& ctx, const MlpBackward& op);

size_t mlp_scratch_bytes(int64_t n, std::span<const int64_t> sizes);  // {in, hidden.., out}; enough for both

}  // namespace pwdice
