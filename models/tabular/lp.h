// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>

#include "data.h"
#include "solution.h"

namespace pwdice::tabular {

// PW-DICE without regularisation:
//   min sum Pi_ij c_ij,  Pi >= 0, d_sa >= 0, rows of Pi = d_s, columns = d^E, d_sa obeys the Bellman flow of
//   T_hat.
// The optimum is unique, its argument in general is not: compare objectives, never LP policies.
struct LpSolution : Solution {
  std::string solver;  // the HiGHS method that found it
};
LpSolution solve_pwdice_lp(const Problem& problem);

}  // namespace pwdice::tabular
