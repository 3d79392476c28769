// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// A data set for the steps of the fused kernels: Hopper's sizes, random states, every third one initial: more than a
// step draws.

#include <fstream>

#include "../datasets/sampler.h"
#include "baseline.h"

namespace pwdice::bench {

inline constexpr int64_t kStateDim = 11, kActionDim = 3, kFeatures = 32;

// `distinct` different states, the rest copies of them.
inline DataTables make_tables(Context& ctx, int64_t transitions, int64_t experts, int64_t distinct) {
  Mixture mixture;
  Transitions& t = mixture.offline;
  t.state_dim = kStateDim, t.action_dim = kActionDim;
  const std::vector<float> states = random_values(distinct * kStateDim, 1, 1);
  const auto append = [&](std::vector<float>& to, int64_t i) {
    const auto from = states.begin() + i % distinct * kStateDim;
    to.insert(to.end(), from, from + kStateDim);
  };
  for (int64_t i = 0; i <= transitions; ++i) append(t.states, i);
  t.actions.assign(static_cast<size_t>(transitions * kActionDim), 0.1f);
  for (int64_t i = 0; i < transitions; ++i) {
    t.next.push_back(static_cast<int32_t>(i + 1));
    t.step.push_back(static_cast<int32_t>(i % 3));
  }
  t.done.assign(static_cast<size_t>(transitions), 0), t.source.assign(static_cast<size_t>(transitions), 0);
  Expert& e = mixture.expert;
  e.state_dim = kStateDim;
  for (int64_t i = 0; i < experts; ++i) append(e.states, 3 * i);
  e.weight.assign(static_cast<size_t>(experts), 1.f / static_cast<float>(experts));
  mixture.state_map.normalizer = Normalizer::identity(kStateDim);
  return DataTables(ctx, std::move(mixture), 0.998);
}

// Unit rows, as the encoder makes them.
inline std::vector<float> random_embeddings(int64_t n, uint32_t seed) {
  std::vector<float> z = random_values(n * kFeatures, 1, seed);
  for (int64_t i = 0; i < n; ++i) {
    double squares = 0;
    for (int64_t k = 0; k < kFeatures; ++k) {
      const auto v = static_cast<double>(z[static_cast<size_t>(i * kFeatures + k)]);
      squares += v * v;
    }
    for (int64_t k = 0; k < kFeatures; ++k) {
      float& v = z[static_cast<size_t>(i * kFeatures + k)];
      v = static_cast<float>(static_cast<double>(v) / std::sqrt(squares));
    }
  }
  return z;
}

// Memory of the process that is in use; 0 where the system does not tell.
inline double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096 / (1 << 20);
}

// Forward, weight gradients, and input gradients of all layers but the first.
inline double mlp_flop(int64_t rows, int64_t in, int64_t width, int64_t out) {
  const auto i = static_cast<double>(in), w = static_cast<double>(width), o = static_cast<double>(out);
  return 2 * static_cast<double>(rows) * (3 * (i * w + w * w + w * o) - i * w);
}

}  // namespace pwdice::bench
