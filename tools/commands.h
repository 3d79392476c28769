// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <CLI/CLI.hpp>

namespace pwdice::tools {

void add_train_commands(CLI::App& app);   // train, resume
void add_policy_commands(CLI::App& app);  // eval, export
void add_collect_command(CLI::App& data);  // data collect
void add_info_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_quickstart_command(CLI::App& app);

}  // namespace pwdice::tools
