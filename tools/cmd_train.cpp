// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cstdio>
#include <memory>

#include "commands.h"
#include "console.h"

namespace pwdice::tools {
namespace {

struct TrainArguments {
  std::string config, profile, directory;
  std::vector<std::string> settings;
  bool quiet = false, json = false, print_config = false;

  Output output() const { return json ? Output::Json : quiet ? Output::Quiet : Output::Terminal; }
};

// Without a file or --profile: ours for somebody's data, else the maze.
std::string default_profile(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    for (const char* key : {"data.expert=", "data.agnostic=", "data.source=files", "data.source=\"files\""}) {
      if (setting.starts_with(key)) return "pwdice";
    }
  }
  return "maze";
}

Config resolve(const TrainArguments& arguments) {
  PWDICE_CHECK(arguments.config.empty() || arguments.profile.empty(),
               "train: --profile and a config file both choose the defaults; put profile = \"{}\" into the file",
               arguments.profile);
  Config config = !arguments.config.empty()    ? load_config(arguments.config)
                  : !arguments.profile.empty() ? make_profile(arguments.profile)
                                               : make_profile(default_profile(arguments.settings));
  for (const std::string& setting : arguments.settings) {
    const size_t equals = setting.find('=');
    PWDICE_CHECK(equals != std::string::npos && equals > 0, "--set {}: expected key=value", setting);
    set_value(config, setting.substr(0, equals), setting.substr(equals + 1));
  }
  if (!arguments.directory.empty()) config.run.directory = arguments.directory;
  validate(config);
  return config;
}

void show(const RunResult& result, Output output) {
  if (output != Output::Terminal) return;
  if (!result.finished) {
    std::printf("stopped; go on with: pwdice resume %s\n", result.directory.c_str());
    return;
  }
  if (result.score) std::printf("normalised score, mean of the last evaluations: %.1f\n", *result.score);
  std::printf("policy: %s\nreport: pwdice report %s\n", result.policy_path.c_str(), result.directory.c_str());
}

void add_output_flags(CLI::App& command, TrainArguments& arguments) {
  auto* quiet = command.add_flag("--quiet", arguments.quiet, "print errors alone");
  command.add_flag("--json", arguments.json, "print one JSON object per line")->excludes(quiet);
}

}  // namespace

void add_train_commands(CLI::App& app) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* train = app.add_subcommand("train", "Train a policy; without a config file, on the embedded maze");
  train->add_option("config", arguments->config, "TOML file; see --print-config for all keys");
  train->add_option("--profile", arguments->profile, "defaults without a file: maze, pwdice (with data.expert), paper or code");
  train->add_option("--set", arguments->settings, "key=value, after the file; may be repeated")->allow_extra_args(false);
  train->add_option("--out", arguments->directory, "run directory (run.directory)");
  train->add_flag("--print-config", arguments->print_config, "print the resolved config and stop");
  add_output_flags(*train, *arguments);
  train->callback([arguments] {
    const Config config = resolve(*arguments);
    if (arguments->print_config) {
      std::fputs(to_toml(config).c_str(), stdout);
      return;
    }
    ConsoleObserver observer(arguments->output());
    show(Run::start(config, observer, stop_requested()), arguments->output());
  });

  CLI::App* resume = app.add_subcommand("resume", "Go on with an interrupted run, from its last checkpoint");
  resume->add_option("run", arguments->directory, "run directory")->required();
  add_output_flags(*resume, *arguments);
  resume->callback([arguments] {
    ConsoleObserver observer(arguments->output());
    show(Run::resume(arguments->directory, observer, stop_requested()), arguments->output());
  });
}

}  // namespace pwdice::tools
