// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>

#include "../datasets/collect.h"
#include "../models/policy_runtime.h"

namespace pwdice::tools {

// The environment a policy file names by its env_id: "Hopper-v4" is hopper. Empty when it names none.
std::string environment_of(const PolicyData& policy);

// Throws InvalidArgument when the policy has other dimensions than the environment.
void check_fits(const std::string& path, const PolicyData& policy, const EnvironmentInfo& info);

// The policy as an environment's controller; each has a runtime of its own.
Controller make_controller(const PolicyData& policy);

}  // namespace pwdice::tools
