// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Internal to models/tabular.
#include <Eigen/Core>
#include <functional>

namespace pwdice::tabular {

// Solves H x = b for a positive semi-definite H given by products, b in its range. `scale` is 1/sqrt(diag H):
// the system solved is the one with a unit diagonal, and the residual is measured there. Stops at `tolerance`
// times the norm of b, or after max_iterations: Newton's line search judges what comes back.
struct ConjugateGradients {
  std::function<void(const Eigen::VectorXd& v, Eigen::VectorXd& out)> product;
  const Eigen::VectorXd& scale;
  double tolerance;
  int max_iterations;

  Eigen::VectorXd solve(const Eigen::VectorXd& b, const Eigen::VectorXd& guess) const;
};

}  // namespace pwdice::tabular
