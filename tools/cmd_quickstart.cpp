// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "../models/run/report.h"
#include "commands.h"
#include "console.h"

namespace pwdice::tools {
namespace {

struct QuickstartArguments {
  int64_t seeds = 1;
  std::string out = "runs/quickstart";
};

struct Score {
  double pwdice, bc;
};

double train(const std::string& method, int64_t seed, const std::string& out, Output output) {
  Config config = make_profile("maze");
  set_value(config, "method", method);
  config.seed = seed;
  config.run.directory = out + "/" + method + "-" + std::to_string(seed);
  std::filesystem::remove_all(config.run.directory);  // of an earlier quickstart
  ConsoleObserver observer(output, method + " ");
  const RunResult result = Run::start(config, observer, stop_requested());
  if (!result.finished) fail(ErrorCode::Internal, "quickstart: interrupted; go on with: pwdice resume {}", config.run.directory);
  return result.score.value();
}

void quickstart(const QuickstartArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Score> scores;
  std::printf("Point-mass maze: the expert shows states on one way to the goal and no actions; the task-agnostic data has\n"
              "actions, but no trajectory that does the task. PW-DICE against behaviour cloning on the same data.\n\n");
  for (int64_t seed = 0; seed < arguments.seeds; ++seed) {
    const Output output = seed == 0 ? Output::Terminal : Output::Quiet;
    scores.push_back({train("pwdice", seed, arguments.out, output), train("bc", seed, arguments.out, output)});
    std::printf("seed %lld: PW-DICE %.1f, BC %.1f\n", static_cast<long long>(seed), scores.back().pwdice, scores.back().bc);
  }
  const std::string run = arguments.out + "/pwdice-0";
  const std::string report = write_report(run);
  double pwdice = 0, bc = 0;
  std::printf("\nnormalised score (0 = random policy, 100 = expert)\n  seed   PW-DICE        BC\n");
  for (size_t i = 0; i < scores.size(); ++i) {
    std::printf("  %4zu   %7.1f   %7.1f\n", i, scores[i].pwdice, scores[i].bc);
    pwdice += scores[i].pwdice / static_cast<double>(scores.size()), bc += scores[i].bc / static_cast<double>(scores.size());
  }
  std::printf("  mean   %7.1f   %7.1f\n", pwdice, bc);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("\n%.0f seconds. Policy for a robot: %s/policy.h5\nPictures: %s\n", seconds, run.c_str(), report.c_str());
}

}  // namespace

void add_quickstart_command(CLI::App& app) {
  auto arguments = std::make_shared<QuickstartArguments>();
  CLI::App* command = app.add_subcommand("quickstart", "Train PW-DICE and BC on the embedded maze and compare them");
  command->add_option("--seeds", arguments->seeds, "seeds to train with")->check(CLI::Range(int64_t{1}, int64_t{100}))->capture_default_str();
  command->add_option("--out", arguments->out, "directory of the runs")->capture_default_str();
  command->callback([arguments] { quickstart(*arguments); });
}

}  // namespace pwdice::tools
