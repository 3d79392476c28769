// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <CLI/CLI.hpp>

namespace pwdice {

// `pwdice data info|validate|merge|subset|generate|collect`.
void add_data_command(CLI::App& app);

}  // namespace pwdice
