// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "data.h"
#include "solution.h"

namespace pwdice::tabular {

// PW-DICE with chi2 regularisation, f(x) = (x-1)^2/2, references U = d^I x d^E and W = d^I:
//   min sum Pi c + eps1 sum U f(Pi/U) + eps2 sum W f(d/W), marginals and flow as in solve_reg.
//   Exact   Pi, d >= 0: dual with f*(y) = max(y+1, 0)^2/2 - 1/2, masses W max(y2+1, 0)
//   Paper   the dual as printed, (y+1)^2/2 without the clip; its read-out W max(0, y2) is the paper's too
enum class Chi2Form { Exact, Paper };

struct Chi2Options {
  double eps1 = 0.01, eps2 = 0.01;
  Chi2Form form = Chi2Form::Exact;
};
struct Chi2Solution : Solution {
  double dual_minimum = 0;     // without the constant -(eps1 + eps2)/2 of the paper's form
  double column_residual = 0;  // Exact only: largest |column sum of Pi - d^E_j|
};
Chi2Solution solve_chi2(const Problem& problem, const Chi2Options& options = {});

}  // namespace pwdice::tabular
