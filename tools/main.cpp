// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cstdio>
#include <exception>

#include "../kernels/version.h"
#include "cmd_data.h"
#include "cmd_tabular.h"
#include "commands.h"

int main(int argc, char** argv) {
  CLI::App app{"PW-DICE: offline imitation from observation. Expert states and task-agnostic data in, policy out."};
  app.set_version_flag("--version", PWDICE_VERSION);
  app.require_subcommand(1);
  pwdice::tools::add_train_commands(app);
  pwdice::tools::add_policy_commands(app);
  pwdice::tools::add_report_command(app);
  pwdice::tools::add_quickstart_command(app);
  pwdice::add_data_command(app);
  pwdice::add_tabular_command(app);
  pwdice::tools::add_info_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pwdice: %s\n", error.what());
    return 1;
  }
  return 0;
}
