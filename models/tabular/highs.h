// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>
#include <vector>

namespace pwdice::tabular {

// min cost . x   subject to  A x = b, x >= 0, with A by columns.
struct LinearProgramme {
  int n_rows = 0;
  std::vector<double> cost;
  std::vector<double> b;
  std::vector<int> column_start{0};  // (columns + 1)
  std::vector<int> row_index;
  std::vector<double> value;

  void add_column(double column_cost);  // entries added next belong to it
  void add_entry(int row, double coefficient);
  int n_columns() const { return static_cast<int>(cost.size()); }
};

struct LpAnswer {
  double objective = 0;
  std::vector<double> x;
  std::string solver;  // "simplex" or "ipm"
};

// Solves with HiGHS, loaded at run time: the first that opens of
//   $PWDICE_HIGHS_LIBRARY, the path of the CMake variable PWDICE_HIGHS_LIBRARY, the system's libhighs.so.
// Simplex first; interior point where that fails. Throws Unsupported if there is no HiGHS, Internal if
// neither method reports an optimum. Safe to call from several threads.
LpAnswer solve_lp(const LinearProgramme& programme);

// Whether solve_lp can work here, and if not why: one sentence, empty when it can.
std::string highs_missing_reason();

}  // namespace pwdice::tabular
