// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "reg.h"

namespace pwdice::tabular {

// The paper's dual loss evaluated and trained through the library's own float32 ops (transport_joint,
// bellman, matmul) on the CPU backend: the check that the ops used for continuous problems have the exact
// optimum. Only the paper's references: the ops' weights are a product of a row and a column distribution.
struct TrainedDual {
  double loss = 0;
  DualPoint point;
  Policy policy;  // read out of the Bellman weights
  int iterations = 0;
};

// Loss and gradient at a point; compare with dual_loss of reg.h.
DualLoss float32_dual_loss(const Problem& problem, const RegOptions& options, const DualPoint& point);

// L-BFGS with continuation in eps, gradients from the ops. The loss has float32 resolution, so the minimum is
// found to about 1e-6.
TrainedDual train_float32_dual(const Problem& problem, const RegOptions& options);

}  // namespace pwdice::tabular
