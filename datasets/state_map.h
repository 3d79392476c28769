// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <vector>

#include "transitions.h"

namespace pwdice {

struct NormalizerOptions {
  bool enabled = true;
  double eps = 1e-4;     // added to the deviation
  bool unbiased = true;  // divide by n - 1
};

// x -> (x - mean) / scale. Disabled, it is mean 0 and scale 1. A dimension that never changes gets scale 1:
// it carries no information, and dividing by eps would blow up whatever deviates from it later.
struct Normalizer {
  std::vector<float> mean, scale;  // (d); scale = deviation + eps

  static Normalizer identity(int64_t d);
  static Normalizer fit(Mat<const float> rows, const NormalizerOptions& options);  // in double
  static Normalizer fit(const Transitions& data, const NormalizerOptions& options);  // over s
  void apply(Mat<float> rows) const;
};

// The ablation of distorted states, s -> D s with D = 0.1 I + D', D'_ij ~ N(0, deviation^2); the paper's 4.
struct Distortion {
  int64_t dim = 0;
  std::vector<float> matrix;  // (dim, dim), or empty: no distortion

  static Distortion random(int64_t dim, double deviation, uint64_t seed);
  bool enabled() const { return !matrix.empty(); }
  void apply(Mat<float> rows) const;  // the first `dim` columns of each row
};

// From an observation of the environment to what the networks see: distortion, absorbing flag 0, normaliser.
// Training data went through it already; evaluation and the exported policy need it.
struct StateMap {
  Distortion distortion;
  bool absorbing = false;
  Normalizer normalizer;

  int64_t observation_dim() const { return state_dim() - (absorbing ? 1 : 0); }
  int64_t state_dim() const { return static_cast<int64_t>(normalizer.mean.size()); }
  void apply(Mat<const float> observations, Mat<float> states) const;
};

}  // namespace pwdice
