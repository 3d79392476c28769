// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <CLI/CLI.hpp>

namespace pwdice {

// pwdice tabular: the experiment on random MDPs.
void add_tabular_command(CLI::App& app);

}  // namespace pwdice
