// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "../infonce.h"

namespace pwdice::cpu {

// M(W0), both (d, d) and contiguous. `factor` (d, d) keeps what the gradient needs: softplus(W0) or W0.
void score_metric(ScoreMetric metric, Mat<const float> w0, float* factor, float* m);

// d_W0 from d_M (contiguous, double). For M = F F^T: d_F = (d_M + d_M^T) F, times sigmoid(W0) where F is the
// softplus.
void score_metric_backward(ScoreMetric metric, Mat<const float> w0, const float* factor, const double* d_m,
                           Mat<float> d_w0);

}  // namespace pwdice::cpu
