// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Facts about the legacy stream (frozen by numpy's compatibility policy):
//   uniform      (a >> 5, b >> 6) of two words, (a 2^26 + b) / 2^53
//   permutation  Fisher-Yates from the back, index by masked rejection on single words
//   multinomial  a chain of binomials, P(k | not before) = p_k / remaining, ended by the first success
//   binomial     inversion: one uniform against exp(n log(1-p))
//   dirichlet    independent Gamma(1) = -log(1 - uniform), times the reciprocal of their sum
//   choice(p)    first index whose normalised cumulative sum exceeds one uniform
#include "legacy_random.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "../../kernels/error.h"

namespace pwdice::tabular {

double LegacyRandom::uniform() {
  const uint32_t a = static_cast<uint32_t>(bits_()) >> 5, b = static_cast<uint32_t>(bits_()) >> 6;
  return (a * 67108864.0 + b) / 9007199254740992.0;
}

uint32_t LegacyRandom::interval(uint32_t maximum) {
  if (maximum == 0) return 0;
  uint32_t mask = maximum;
  for (const int shift : {1, 2, 4, 8, 16}) mask |= mask >> shift;
  for (;;) {
    const uint32_t value = static_cast<uint32_t>(bits_()) & mask;
    if (value <= maximum) return value;
  }
}

std::vector<int> LegacyRandom::choose_distinct(int population, int count) {
  PWDICE_CHECK(count >= 0 && count <= population, "choose_distinct: {} out of {}", count, population);
  std::vector<int> order(static_cast<size_t>(population));
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t i = static_cast<uint32_t>(population) - 1; i > 0; --i)
    std::swap(order[i], order[interval(i)]);
  order.resize(static_cast<size_t>(count));
  return order;
}

int LegacyRandom::choose(std::span<const double> probabilities) {
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  const double u = uniform();
  double cumulative = 0;
  for (size_t k = 0; k < probabilities.size(); ++k) {
    cumulative += probabilities[k];
    if (cumulative / total > u) return static_cast<int>(k);
  }
  return static_cast<int>(probabilities.size()) - 1;
}

bool LegacyRandom::bernoulli(double p) {
  const double q = 1.0 - p;
  const double q_log_exp = std::exp(std::log(q));  // numpy computes q^n this way, rounding included
  return uniform() > q_log_exp;
}

std::vector<double> LegacyRandom::one_hot(int n) {
  std::vector<double> out(static_cast<size_t>(n));
  const double p = 1.0 / n;
  double remaining = 1.0;
  for (int k = 0; k < n - 1; ++k) {
    if (bernoulli(p / remaining)) {
      out[static_cast<size_t>(k)] = 1;
      return out;
    }
    remaining -= p;
  }
  out.back() = 1;
  return out;
}

std::vector<double> LegacyRandom::dirichlet_ones(int n) {
  std::vector<double> out(static_cast<size_t>(n));
  double sum = 0;
  for (double& value : out) sum += value = -std::log(1.0 - uniform());
  const double inverse = 1.0 / sum;
  for (double& value : out) value *= inverse;
  return out;
}

}  // namespace pwdice::tabular
