// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <algorithm>
#include <cstdio>
#include <exception>

#include "../kernels/version.h"
#include "cmd_data.h"
#include "cmd_tabular.h"
#include "commands.h"

namespace {

// A word where a command should stand, or null.
const char* unknown_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const auto commands = at->get_subcommands([](const CLI::App*) { return true; });
    if (commands.empty()) return nullptr;
    const auto found = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* c) { return c->get_name() == argv[i]; });
    if (found == commands.end()) return argv[i];
    at = *found;
  }
  return nullptr;
}

}  // namespace

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
  constexpr int kUsage = 2;
  if (const char* word = unknown_command(app, argc, argv)) {
    std::fprintf(stderr, "pwdice: there is no command %s; pwdice --help lists them\n", word);
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pwdice: %s\n", error.what());
    return 1;
  }
  return 0;
}
