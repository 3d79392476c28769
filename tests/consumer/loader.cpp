// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// What links the component run: a policy that goes through a file.
#include <cstdio>

#include "models/policy_file.h"

int main() {
  pwdice::PolicyData data;
  data.layers = {{1, 2, {1, -1}, {0.5f}}};
  data.obs_mean = {0, 0}, data.obs_std = {1, 1};
  data.action_scale = {2}, data.action_bias = {0};
  pwdice::save_policy("consumer_policy.h5", data);
  const pwdice::PolicyData loaded = pwdice::load_policy("consumer_policy.h5");
  std::printf("checksum %08x\n", pwdice::policy_checksum(loaded));
  return pwdice::policy_checksum(loaded) == pwdice::policy_checksum(data) ? 0 : 1;
}
