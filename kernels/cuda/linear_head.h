// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <algorithm>

#include "../linear.h"
#include "launch.cuh"

namespace pwdice::cuda {

// Layers of at most kOutputs outputs: the heads of the networks.
struct LinearHead {
  static constexpr int kOutputs = 8;
  static constexpr int kChunkRows = 256;  // of x, per block of the parameters' gradient

  static int64_t chunks(int64_t n) { return ceil_div(n, kChunkRows); }
  static size_t scratch_bytes(int64_t n, int64_t in, int64_t out) {  // (chunks, out, in + 1): d_w and d_b
    return Scratch::rounded(static_cast<size_t>(chunks(n) * out * (in + 1)) * sizeof(float));
  }
};

void head_forward(const Launch& on, const LinearForward& op);
void head_backward_input(const Launch& on, const LinearBackwardInput& op);
void head_backward_params(const Launch& on, const LinearBackwardParams& op);

}  // namespace pwdice::cuda
