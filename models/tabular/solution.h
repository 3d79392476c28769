// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <vector>

#include "model.h"

namespace pwdice::tabular {

// What a solver returns. Every mass that the constraints force to zero is exactly zero.
struct Solution {
  std::vector<double> d_sa;  // (n_states, n_actions), the learner's occupancy in T_hat
  std::vector<double> d_s;   // (n_states)
  Policy policy;             // read out of d_sa
  double objective = 0;      // optimum of the programme in its own sign
  double constraint_residual = 0;
  double newton_decrement = 0;  // squared; 0 for solvers that are not Newton's
  int iterations = 0;
  bool converged = false;
};

}  // namespace pwdice::tabular
