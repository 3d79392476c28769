// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>

#include "../../kernels/context.h"

namespace pwdice {

// What a run's numbers depend on besides its config, as JSON: version, compiler, CPU, backend and why.
std::string environment_report(Context& ctx);

}  // namespace pwdice
