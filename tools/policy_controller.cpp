// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "policy_controller.h"

#include <cctype>

#include "../kernels/error.h"

namespace pwdice::tools {

std::string environment_of(const PolicyData& policy) {
  std::string id = policy.env_id.substr(0, policy.env_id.find('-'));
  for (char& c : id) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return id == "pointmaze" ? "maze" : id;
}

void check_fits(const std::string& path, const PolicyData& policy, const EnvironmentInfo& info) {
  const int64_t s = static_cast<int64_t>(policy.obs_mean.size()),
                a = static_cast<int64_t>(policy.action_scale.size());
  PWDICE_CHECK(s == info.observation_dim && a == info.action_dim,
               "{}: the policy is {} -> {}, {} is {} -> {}", path, s, a, info.name, info.observation_dim,
               info.action_dim);
}

Controller make_controller(const PolicyData& policy) {
  return
      [runtime = std::make_shared<PolicyRuntime>(policy)](Vec<const float> observation, Vec<float> action) {
        const ActStatus status = runtime->act(observation.data, static_cast<size_t>(observation.size),
                                              action.data, static_cast<size_t>(action.size));
        if (status != ActStatus::Ok) fail(ErrorCode::NotFinite, "policy: {}", describe(status));
      };
}

}  // namespace pwdice::tools
