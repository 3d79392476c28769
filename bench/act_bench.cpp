// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// act/1: one observation of hopper to one action on one thread, [256, 256] policy: what a control loop pays.
#include <array>

#include "../models/policy_runtime.h"
#include "baseline.h"
#include "suite.h"

namespace pwdice::bench {
namespace {

constexpr int kSizes[] = {11, 256, 256, 3};

PolicyData make_policy() {
  PolicyData policy;
  for (int l = 0; l < 3; ++l) {
    const int in = kSizes[l], out = kSizes[l + 1];
    policy.layers.push_back({out, in, random_values(out * in, 1 / std::sqrt(in), static_cast<uint32_t>(l)),
                             random_values(out, 0.1, static_cast<uint32_t>(10 + l))});
  }
  policy.obs_mean.assign(11, 0.f), policy.obs_std.assign(11, 1.f);
  policy.action_scale.assign(3, 1.f), policy.action_bias.assign(3, 0.f);
  return policy;
}

std::vector<double> expected_action(const PolicyData& policy, const std::vector<float>& observation) {
  std::vector<double> x(observation.begin(), observation.end());
  for (size_t l = 0; l < policy.layers.size(); ++l) {
    const auto& [rows, cols, weight, bias] = policy.layers[l];
    const bool last = l + 1 == policy.layers.size();
    x = layer({weight.data(), rows, cols}, bias.data(), x, last ? Activation::Tanh : Activation::Relu);
  }
  return x;
}

}  // namespace

void register_act(Suite& suite) {
  add("act/1", [&suite](benchmark::State& state) {
    const PolicyData policy = make_policy();
    PolicyRuntime runtime(policy);
    const std::vector<float> observation = random_values(11, 1, 42);
    std::array<float, 3> action{};
    const auto act = [&] {
      benchmark::DoNotOptimize(
          runtime.act(observation.data(), observation.size(), action.data(), action.size()));
    };
    act();
    const std::vector<double> want = expected_action(policy, observation);
    for (size_t i = 0; i < action.size(); ++i) {
      if (!close(action[i], want[i], 1)) return fail(state, "the action is wrong");
    }
    Machine one = suite.machine;
    one.flop_per_s /= suite.ctx.threads(), one.tanh_per_s /= suite.ctx.threads();
    time_iterations(state, suite.single, one, Work{2.0 * (11 * 256 + 256 * 256 + 256 * 3), 0, 3}, act);
  })->Unit(benchmark::kMicrosecond);
}

}  // namespace pwdice::bench
