// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "metrics.h"
#include "reg.h"

namespace pwdice::tabular {

// The dual solver on one random MDP beyond the paper's size.
struct ScalingOptions {
  int states = 2000;
  int agnostic_size = 0;  // transitions; 0: 50 per state
  int expert_size = 0;    // transitions; 0: 5 per state
  double eta = 0.1;
  uint32_t seed = 1;
  RegOptions reg;
};

struct ScalingReport {
  int states = 0, expert_states = 0;  // rows and columns of the transport plan
  int iterations = 0;
  double data_seconds = 0, solve_seconds = 0;
  double solve_megabytes = 0;  // growth of the peak resident memory while solving
  double peak_megabytes = 0;   // of the process
  double objective = 0, duality_gap = 0, constraint_residual = 0;
  bool converged = false;
  Metrics metrics;
};

// The goal is chosen among the first 16 states instead of all: value iteration for every candidate would
// dominate.
ScalingReport run_scaling(const ScalingOptions& options);

}  // namespace pwdice::tabular
