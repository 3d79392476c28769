// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

enum class Activation { None, Relu, Tanh };

// d_pre = d_y * f'(pre), with f' written through the saved output y = f(pre):
//   None 1        Relu 1[y > 0]        Tanh 1 - y^2
struct ActivationBackward {
  Mat<const float> y, d_y;  // (n, d)
  Activation act;
  Mat<float> d_pre;  // out (n, d); may be d_y itself
};
void activation_backward(Context& ctx, const ActivationBackward& op);

}  // namespace pwdice
