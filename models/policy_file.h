// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <filesystem>
#include <vector>

#include "../datasets/hdf5_file.h"
#include "policy_runtime.h"

namespace pwdice {

// The policy file, HDF5:
//   /policy                    attributes activation, output = "tanh_mean", env_id, version, checksum
//   /policy/layers/<i>/weight  (out, in)      /policy/layers/<i>/bias      (out)
//   /policy/obs_mean, obs_std, action_scale, action_bias
//   /policy/check/observations (k, S), actions (k, A): recorded inputs and outputs, for `pwdice export --check`
// The checksum covers every number of the policy; a file without one (made elsewhere) is accepted.
struct PolicyCheck {
  std::vector<float> observations, actions;  // (k, S), (k, A)
};

void save_policy(const std::filesystem::path& path, const PolicyData& policy, const PolicyCheck& check = {});
PolicyData load_policy(const std::filesystem::path& path, PolicyCheck* check = nullptr);  // throws BadFile
PolicyData load_policy(const Hdf5Reader& file, PolicyCheck* check = nullptr);

uint32_t policy_checksum(const PolicyData& policy);

// The largest difference between the recorded actions and those the policy gives now.
float replay(const PolicyData& policy, const PolicyCheck& check);

}  // namespace pwdice
