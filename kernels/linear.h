// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "activation.h"

namespace pwdice {

// y = f(x W^T + b). W is (out, in), as in the policy file.
struct LinearForward {
  Mat<const float> x;  // (n, in)
  Mat<const float> w;  // (out, in)
  Vec<const float> b;  // (out)
  Activation act;
  Mat<float> y;  // out (n, out)
};
void linear_forward(Context& ctx, const LinearForward& op);

// d_x = (d_pre W) * f'(x), where x itself was f(...) of the layer before: the result is that layer's d_pre,
// so a chain of layers needs no pass of its own for the derivative. x_act None: d_x is the plain gradient.
struct LinearBackwardInput {
  Mat<const float> d_pre;  // (n, out) gradient before this layer's activation
  Mat<const float> w;      // (out, in)
  Mat<const float> x;      // (n, in)
  Activation x_act;        // the activation that made x
  Mat<float> d_x;          // out (n, in); may be x
};
void linear_backward_input(Context& ctx, const LinearBackwardInput& op);

// d_w = d_pre^T x        d_b = sum over rows of d_pre
struct LinearBackwardParams {
  Mat<const float> d_pre;  // (n, out)
  Mat<const float> x;      // (n, in)
  Mat<float> d_w;          // out (out, in)
  Vec<float> d_b;          // out (out)
};
void linear_backward_params(Context& ctx, const LinearBackwardParams& op);

size_t linear_scratch_bytes(int64_t n, int64_t in, int64_t out);  // enough for each of the three

}  // namespace pwdice
