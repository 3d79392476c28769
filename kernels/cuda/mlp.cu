// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Networks on the GPU are their layers one after another (linear.cu): a batch fills the device, and what a
// layer leaves for the next one is in L2 already. d takes the place of the outputs it was computed from.
#include "../backends.h"

namespace pwdice::cuda {

void mlp_forward(Context& ctx, const MlpForward& op) {
  Mat<const float> x = op.x;
  for (const MlpLayer& layer : op.layers) {
    cuda::linear_forward(ctx, {x, layer.w, layer.b, layer.act, layer.y});
    x = layer.y;
  }
}

void mlp_backward(Context& ctx, const MlpBackward& op) {
  Mat<const float> d = op.d_pre;
  for (size_t l = op.layers.size(); l-- > 0;) {
    const Mat<const float> input = l == 0 ? op.x : Mat<const float>(op.layers[l - 1].y);
    cuda::linear_backward_params(ctx, {d, input, op.gradients[l].d_w, op.gradients[l].d_b});
    const Mat<float> below = l == 0 ? op.d_x : op.layers[l - 1].y;
    if (l == 0 && below.data == nullptr) return;
    const Activation act = l == 0 ? Activation::None : op.layers[l - 1].act;
    cuda::linear_backward_input(ctx, {d, op.layers[l].w, input, act, below});
    d = below;
  }
}

}  // namespace pwdice::cuda
