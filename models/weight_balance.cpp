// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "weight_balance.h"

#include <algorithm>
#include <cmath>

#include "../kernels/error.h"

namespace pwdice {

// Sums in double and in order: the same weights for any backend's same input.
void balance(const WeightBalance& how, const std::vector<int32_t>& step, std::vector<float>& w) {
  PWDICE_CHECK(step.size() == w.size(), "weight balance: {} weights for {} transitions", w.size(), step.size());
  if (how.changes_nothing() || w.empty()) return;
  std::vector<double> v(w.size());
  std::vector<double> total(static_cast<size_t>(*std::max_element(step.begin(), step.end())) + 1, 0);
  for (size_t i = 0; i < w.size(); ++i) {
    v[i] = std::pow(static_cast<double>(w[i]), how.power);
    total[static_cast<size_t>(step[i])] += v[i];
  }
  double largest = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    const double mass = total[static_cast<size_t>(step[i])];
    if (how.steps && mass > 0) v[i] /= mass;
    largest = std::max(largest, v[i]);
  }
  if (largest <= 0) return;
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(v[i] / largest);
}

}  // namespace pwdice
