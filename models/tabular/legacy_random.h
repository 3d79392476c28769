// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace pwdice::tabular {

// The draws of numpy's legacy RandomState (MT19937), bit for bit, for the few distributions the experiment
// needs. The published instances come from one such stream; our own instances use it too, so there is one
// generator.
class LegacyRandom {
 public:
  explicit LegacyRandom(uint32_t seed) : bits_(seed) {}

  double uniform();                                             // [0, 1), 53 bits from two words
  std::vector<int> choose_distinct(int population, int count);  // choice(population, count, replace=False)
  int choose(std::span<const double> probabilities);            // choice(n, p=probabilities)
  std::vector<double> one_hot(int n);                           // multinomial(1, [1/n] * n)
  std::vector<double> dirichlet_ones(int n);                    // dirichlet([1] * n)

 private:
  uint32_t interval(uint32_t maximum);  // uniform integer in [0, maximum]
  bool bernoulli(double p);             // binomial(1, p) for p <= 1/2, by inversion

  std::mt19937 bits_;  // init_genrand, as numpy seeds it
};

}  // namespace pwdice::tabular
