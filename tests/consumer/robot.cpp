// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// What a robotics stack does: build a policy once, act in a loop.
#include <cmath>
#include <cstdio>

#include "models/policy_runtime.h"

int main() {
  pwdice::PolicyData data;
  data.layers = {{2, 3, {1, 0, 0, 0, 1, 0}, {0, 0}}, {1, 2, {1, -1}, {0.5f}}};
  data.obs_mean = {0, 0, 0}, data.obs_std = {1, 1, 1};
  data.action_scale = {2}, data.action_bias = {0};
  pwdice::PolicyRuntime policy(data);
  const float observation[3] = {1, 2, 3};
  float action[1];
  if (policy.act(observation, 3, action, 1) != pwdice::ActStatus::Ok) return 1;
  const float expected = 2 * std::tanh(1.f - 2.f + 0.5f);
  std::printf("action %g, expected %g\n", action[0], expected);
  return std::abs(action[0] - expected) < 1e-6f ? 0 : 1;
}
