// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "cloning_weights.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "../kernels/error.h"

namespace pwdice {
namespace {

// Means of the logarithms over the transitions that follow in the same episode; -infinity where all of them are zero, while
// a single zero counts as the smallest float.
std::vector<double> look_ahead(int64_t count, const std::vector<int32_t>& step, const std::vector<float>& w) {
  const size_t n = w.size();
  std::vector<double> log_w(n), mean(n);
  for (size_t i = 0; i < n; ++i) log_w[i] = std::log(static_cast<double>(std::max(w[i], std::numeric_limits<float>::min())));
  size_t end = 0;  // one past the last transition of the episode
  for (size_t i = 0; i < n; ++i) {
    if (i >= end) {
      for (end = i + 1; end < n && step[end] > step[end - 1];) ++end;
    }
    const size_t last = std::min(end, i + static_cast<size_t>(count));
    double sum = 0;
    bool any = false;
    for (size_t j = i; j < last; ++j) sum += log_w[j], any = any || w[j] > 0;
    mean[i] = any ? sum / static_cast<double>(last - i) : -std::numeric_limits<double>::infinity();
  }
  return mean;
}

// Each step's weights are cut down to the value above which the share `cap` of the step's mass lies, and then made to sum to
// one. `members` are the transitions of the step.
void balance_step(double cap, const std::vector<size_t>& members, std::vector<double>& v) {
  std::vector<double> sorted;
  sorted.reserve(members.size());
  for (const size_t i : members) sorted.push_back(v[i]);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double mass = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  if (mass <= 0) return;
  double above = 0, most = sorted.front(), total = 0;
  for (size_t k = 0; k < sorted.size() && above < cap * mass; ++k) above += most = sorted[k];
  for (const size_t i : members) total += v[i] = std::min(v[i], most);
  for (const size_t i : members) v[i] /= total;
}

}  // namespace

// Sums in double and in order: the same weights for any backend's same input.
void shape_weights(const CloningWeights& how, const std::vector<int32_t>& step, std::vector<float>& w) {
  PWDICE_CHECK(step.size() == w.size(), "cloning weights: {} weights for {} transitions", w.size(), step.size());
  if (how.change_nothing() || w.empty()) return;
  std::vector<double> v = look_ahead(how.lookahead, step, w);
  const double top = *std::max_element(v.begin(), v.end());
  if (!std::isfinite(top)) return;  // nobody has a weight
  for (double& value : v) value = std::exp(how.power * (value - top));
  if (how.balanced) {
    std::vector<std::vector<size_t>> members(static_cast<size_t>(*std::max_element(step.begin(), step.end())) + 1);
    for (size_t i = 0; i < step.size(); ++i) members[static_cast<size_t>(step[i])].push_back(i);
    for (const auto& transitions : members) balance_step(how.cap, transitions, v);
  }
  const double largest = *std::max_element(v.begin(), v.end());
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(v[i] / largest);
}

}  // namespace pwdice
