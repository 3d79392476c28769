// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cstdio>
#include <memory>

#include "../models/run/report.h"
#include "commands.h"

namespace pwdice::tools {

void add_report_command(CLI::App& app) {
  auto run = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("report", "Write RUN/report.html: curves, weights, maps and the maze");
  command->add_option("run", *run, "run directory")->required();
  command->callback([run] { std::printf("%s\n", write_report(*run).c_str()); });
}

}  // namespace pwdice::tools
