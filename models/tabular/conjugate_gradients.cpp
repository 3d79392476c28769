// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "conjugate_gradients.h"

namespace pwdice::tabular {

Eigen::VectorXd ConjugateGradients::solve(const Eigen::VectorXd& b, const Eigen::VectorXd& guess) const {
  Eigen::VectorXd x = guess, image(b.size());
  product(x, image);
  Eigen::VectorXd residual = b - image;
  Eigen::VectorXd scaled = scale.cwiseProduct(scale).cwiseProduct(residual), direction = scaled;
  const double goal = tolerance * tolerance * scale.cwiseProduct(b).squaredNorm();
  double rho = residual.dot(scaled);
  for (int k = 0; k < max_iterations && rho > goal; ++k) {
    product(direction, image);
    const double curvature = direction.dot(image);
    if (!(curvature > 0)) break;
    const double t = rho / curvature;
    x += t * direction;
    residual -= t * image;
    scaled = scale.cwiseProduct(scale).cwiseProduct(residual);
    const double next = residual.dot(scaled);
    direction = scaled + (next / rho) * direction;
    rho = next;
  }
  return x;
}

}  // namespace pwdice::tabular
