// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>

#include "../../datasets/environment.h"
#include "../../datasets/mixture.h"
#include "../config.h"

namespace pwdice {

// The data a config asks for: the embedded maze, or files.
Mixture make_mixture(const Config& config);

// The environment a config evaluates in; empty when it names none. A name this build cannot simulate throws
// Unsupported with the reason.
EnvironmentFactory make_environment(const Config& config);
EnvironmentFactory environment_by_name(const std::string& name);
std::string environment_name(const Config& config);  // "maze" for the embedded data unless the config says otherwise

}  // namespace pwdice
