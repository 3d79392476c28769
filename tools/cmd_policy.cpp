// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "../host/checkpoint.h"
#include "../models/policy_file.h"
#include "../models/run/task.h"
#include "commands.h"
#include "policy_controller.h"
#include "record.h"

namespace pwdice::tools {
namespace {

struct EvalArguments {
  std::string policy, environment, record;
  int64_t episodes = 10;
  uint64_t seed = 10000;
  bool json = false;
};

void evaluate_policy(const EvalArguments& arguments) {
  const PolicyData data = load_policy(arguments.policy);
  const std::string name = arguments.environment.empty() ? environment_of(data) : arguments.environment;
  PWDICE_CHECK(!name.empty(), "{}: names no environment; give --env", arguments.policy);
  const EnvironmentFactory make = environment_by_name(name);
  const EnvironmentInfo info = make()->info();
  check_fits(arguments.policy, data, info);
  if (!arguments.record.empty()) check_recordable(name, arguments.record);
  const auto act = [controller = make_controller(data)](Mat<const float> observations, Mat<float> actions) {
    for (int64_t i = 0; i < observations.rows; ++i) {
      controller({observations.row(i), observations.cols}, {actions.row(i), actions.cols});
    }
  };
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const Evaluation e = evaluate(make, act, {arguments.episodes, arguments.seed, threads});
  if (arguments.json) {
    const nlohmann::json out{{"environment", info.name}, {"episodes", arguments.episodes}, {"seed", arguments.seed},
                             {"return_mean", e.mean}, {"return_std", e.deviation}, {"return_min", e.least},
                             {"return_max", e.greatest}, {"normalised", e.score}, {"returns", e.returns}};
    std::printf("%s\n", out.dump().c_str());
  } else {
    std::printf("%s: return %.1f +- %.1f (min %.1f, max %.1f) over %lld episodes, normalised score %.1f\n",
                info.name.c_str(), e.mean, e.deviation, e.least, e.greatest, static_cast<long long>(arguments.episodes), e.score);
  }
  if (!arguments.record.empty()) record_episode(name, make_controller(data), arguments.seed, arguments.record);
}

struct ExportArguments {
  std::string policy, header, name = "policy";
  bool check = false;
};

void export_policy(const ExportArguments& arguments) {
  PWDICE_CHECK(arguments.check || !arguments.header.empty(), "export: nothing to do; give --header FILE or --check");
  PolicyCheck check;
  const PolicyData policy = load_policy(arguments.policy, &check);
  if (!arguments.header.empty()) {
    write_file_atomically(arguments.header, policy_c_header(policy, arguments.name));
    std::printf("%s: wrote %s\n", arguments.policy.c_str(), arguments.header.c_str());
  }
  if (!arguments.check) return;
  PWDICE_CHECK(!check.observations.empty(), "{}: has no recorded inputs to replay", arguments.policy);
  constexpr float kTolerance = 1e-5f;  // another CPU may sum in another order
  const float worst = replay(policy, check);
  if (!(worst <= kTolerance)) {
    fail(ErrorCode::BadFile, "{}: actions differ from the recorded ones by up to {}", arguments.policy, worst);
  }
  std::printf("%s: %zu recorded inputs replayed, largest difference %g\n", arguments.policy.c_str(),
              check.observations.size() / policy.obs_mean.size(), static_cast<double>(worst));
}

}  // namespace

void add_policy_commands(CLI::App& app) {
  auto eval = std::make_shared<EvalArguments>();
  CLI::App* evaluation = app.add_subcommand("eval", "Roll out a policy and print its return and normalised score");
  evaluation->add_option("policy", eval->policy, "policy file")->required();
  evaluation->add_option("--env", eval->environment, "environment instead of the file's: maze, hopper, halfcheetah, walker2d, ant");
  evaluation->add_option("--episodes", eval->episodes)->check(CLI::Range(int64_t{1}, int64_t{100000}))->capture_default_str();
  evaluation->add_option("--seed", eval->seed, "episode k is reset with seed + k")->capture_default_str();
  evaluation->add_option("--record", eval->record, "draw the first episode: .png a strip, .apng a film; of the maze, .svg");
  evaluation->add_flag("--json", eval->json, "print one JSON object");
  evaluation->callback([eval] { evaluate_policy(*eval); });

  auto out = std::make_shared<ExportArguments>();
  CLI::App* exporting = app.add_subcommand("export", "Write a policy as a C header, or check a policy file");
  exporting->add_option("policy", out->policy, "policy file")->required();
  exporting->add_option("--header", out->header, "C header to write");
  exporting->add_option("--name", out->name, "prefix of its names")->capture_default_str();
  exporting->add_flag("--check", out->check, "replay the recorded inputs and compare the actions");
  exporting->callback([out] { export_policy(*out); });
}

}  // namespace pwdice::tools
