// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "../datasets/episode_file.h"
#include "../kernels/error.h"
#include "../models/policy_file.h"
#include "../models/run/task.h"
#include "commands.h"
#include "policy_controller.h"

namespace pwdice::tools {
namespace {

struct CollectArguments {
  std::string environment, policy, out;
  CollectOptions options;
  bool json = false;
};

// Mean, deviation, least and greatest return; nothing when the only episode was cut.
FileAttributes return_attributes(const std::vector<double>& returns, const EnvironmentInfo& info) {
  if (returns.empty()) return {};
  const double n = static_cast<double>(returns.size());
  double mean = 0, square = 0;
  for (const double r : returns) mean += r / n;
  for (const double r : returns) square += (r - mean) * (r - mean) / n;
  const auto [least, greatest] = std::minmax_element(returns.begin(), returns.end());
  return {{"return_mean", mean},
          {"return_std", std::sqrt(square)},
          {"return_min", *least},
          {"return_max", *greatest},
          {"normalized_score_mean", info.normalised_score(mean)}};
}

void print(const CollectArguments& arguments, const Collection& made, const FileAttributes& attributes,
           double seconds) {
  nlohmann::ordered_json out{{"file", arguments.out},
                             {"env_id", made.data.env_id},
                             {"transitions", made.data.rows()},
                             {"steps_per_second", static_cast<double>(made.data.rows()) / seconds}};
  for (const auto& [name, value] : attributes) {
    std::visit([&out, key = name](const auto& v) { out[key] = v; }, value);
  }
  if (arguments.json) {
    std::printf("%s\n", out.dump().c_str());
    return;
  }
  std::printf("%s: %lld transitions of %s", arguments.out.c_str(), static_cast<long long>(made.data.rows()),
              made.data.env_id.c_str());
  if (out.contains("return_mean")) {
    std::printf(", return %.1f +- %.1f (min %.1f, max %.1f) over %zu episodes, normalised score %.1f",
                out["return_mean"].get<double>(), out["return_std"].get<double>(),
                out["return_min"].get<double>(), out["return_max"].get<double>(), made.returns.size(),
                out["normalized_score_mean"].get<double>());
  }
  std::printf("; %.0f steps/s\n", out["steps_per_second"].get<double>());
}

void collect_data(const CollectArguments& arguments) {
  PWDICE_CHECK((arguments.options.episodes > 0) != (arguments.options.transitions > 0),
               "collect: give either --episodes or --transitions");
  PWDICE_CHECK(!std::filesystem::exists(arguments.out),
               "collect: {} exists already; remove it or choose another --out", arguments.out);
  const EnvironmentFactory make = environment_by_name(arguments.environment);
  const EnvironmentInfo info = make()->info();
  ControllerFactory controllers;
  if (arguments.policy != "random") {
    const PolicyData policy = load_policy(arguments.policy);
    check_fits(arguments.policy, policy, info);
    controllers = [policy] { return make_controller(policy); };
  }
  const auto start = std::chrono::steady_clock::now();
  const Collection made = collect(make, controllers, arguments.options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  FileAttributes attributes{
      {"policy", arguments.policy},
      {"noise", arguments.options.noise},
      {"seed", static_cast<int64_t>(arguments.options.seed)},
      {"n_episodes", static_cast<int64_t>(find_episodes(made.data, info.max_steps).size())}};
  for (auto& attribute : return_attributes(made.returns, info)) attributes.push_back(std::move(attribute));
  write_episodes(arguments.out, made.data, attributes);
  print(arguments, made, attributes, std::max(seconds, 1e-9));
}

}  // namespace

void add_collect_command(CLI::App& data) {
  const auto arguments = std::make_shared<CollectArguments>();
  arguments->options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App* sub = data.add_subcommand(
      "collect", "Roll a policy into a D4RL-schema file; the same rows on any number of threads");
  sub->add_option("--env", arguments->environment, "maze, hopper, halfcheetah, walker2d, ant or ant111")
      ->required();
  sub->add_option("--policy", arguments->policy, "policy file, or random: uniform actions")->required();
  sub->add_option("--out", arguments->out, "file to write")->required();
  constexpr int64_t kMost = 100'000'000;
  sub->add_option("--episodes", arguments->options.episodes, "this many episodes")
      ->check(CLI::Range(int64_t{1}, kMost));
  sub->add_option("--transitions", arguments->options.transitions,
                  "or this many rows; the last episode is cut there")
      ->check(CLI::Range(int64_t{1}, kMost));
  sub->add_option("--seed", arguments->options.seed, "episode k is reset with seed + k")
      ->capture_default_str();
  sub->add_option("--noise", arguments->options.noise, "deviation of Gaussian noise on the policy's actions")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  sub->add_option("--threads", arguments->options.threads, "environments that step side by side")
      ->check(CLI::Range(1, 1024));
  sub->add_flag("--json", arguments->json, "print one JSON object");
  sub->callback([arguments] { collect_data(*arguments); });
}

}  // namespace pwdice::tools
