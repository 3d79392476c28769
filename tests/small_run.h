// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// A run of the trainer that takes a second, and its networks in double.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "../datasets/maze.h"
#include "../models/pwdice.h"
#include "op_case.h"

namespace pwdice::test {

inline Config small_config(const std::vector<std::pair<const char*, const char*>>& settings = {}) {
  Config config;
  config.threads = 2;
  for (const auto& [key, value] : {std::pair{"contrastive.steps", "20"}, std::pair{"contrastive.batch", "128"},
                                   std::pair{"discriminator.steps", "20"}, std::pair{"discriminator.batch", "64"},
                                   std::pair{"dual.steps", "30"}, std::pair{"dual.batch", "64"},
                                   std::pair{"dual.init_batch", "32"}, std::pair{"policy.start", "5"},
                                   std::pair{"policy.batch", "64"}, std::pair{"policy.weights_every", "10"},
                                   std::pair{"policy.steps_per_dual", "2"}, std::pair{"policy.balance", "none"},
                                   std::pair{"policy.power", "1"}, std::pair{"policy.lookahead", "1"}}) {
    set_value(config, key, value);
  }
  for (const auto& [key, value] : settings) set_value(config, key, value);
  return config;
}

inline Mixture small_mixture(const MixtureSpec& base = {}) {
  MixtureSpec spec = base;
  spec.expert_episode = 0;
  spec.max_episode_steps = make_maze()->info().max_steps;
  spec.weighting = ExpertWeighting::ExpTail;
  const MazeDataOptions options{.seed = 1, .transitions = 1500};
  std::vector<Episodes> offline;
  offline.push_back(maze_offline_data(options));
  return build_mixture(maze_expert_data(options), std::move(offline), spec);
}

struct Trained {
  Context ctx{ContextOptions{.threads = 2}};
  Trainer trainer;
  explicit Trained(const Config& config, const MixtureSpec& spec = {}) : trainer(ctx, config, small_mixture(spec)) {
    while (trainer.phase() != Phase::Done) trainer.advance(ctx);
  }
  std::map<std::string, std::vector<char>> state() {
    Checkpoint checkpoint;
    trainer.save(ctx, checkpoint);
    std::map<std::string, std::vector<char>> out;
    for (const auto& name : checkpoint.names()) {
      const std::string bytes = checkpoint.get_text(name);
      out[name].assign(bytes.begin(), bytes.end());
    }
    return out;
  }
};

// A network in double, from the values of a parameter store that begins with it.
class Network {
 public:
  Network(std::vector<float> values, std::vector<int64_t> sizes, bool tanh = false)
      : sizes_(std::move(sizes)), values_(std::move(values)), tanh_(tanh) {}

  std::vector<double> operator()(const float* x) const {
    std::vector<double> h(x, x + sizes_[0]);
    size_t at = 0;
    const auto aligned = [](size_t n) { return (n + 15) / 16 * 16; };  // entries lie 64 bytes apart
    for (size_t l = 0; l + 1 < sizes_.size(); ++l) {
      const size_t in = static_cast<size_t>(sizes_[l]), out = static_cast<size_t>(sizes_[l + 1]);
      const float* w = values_.data() + at;
      const float* b = w + aligned(in * out);
      std::vector<double> y(out);
      for (size_t o = 0; o < out; ++o) {
        y[o] = b[o];
        for (size_t i = 0; i < in; ++i) y[o] += static_cast<double>(w[o * in + i]) * h[i];
        if (l + 2 < sizes_.size()) y[o] = tanh_ ? std::tanh(y[o]) : std::max(0.0, y[o]);
      }
      at += aligned(in * out) + aligned(out);
      h = y;
    }
    return h;
  }

 private:
  std::vector<int64_t> sizes_;
  std::vector<float> values_;
  bool tanh_;  // else ReLU
};

// One of a trained run, from the parameters in its checkpoint.
inline Network reference_network(Trained& trained, const std::string& network, std::vector<int64_t> sizes,
                                 bool tanh = false) {
  Checkpoint checkpoint;
  trained.trainer.save(trained.ctx, checkpoint);
  const std::string name = "state/" + network + "/values";
  std::vector<float> values(checkpoint.bytes_of(name) / sizeof(float));
  checkpoint.get(name, values.data(), values.size());
  return {std::move(values), std::move(sizes), tanh};
}

}  // namespace pwdice::test
