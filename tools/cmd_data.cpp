// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "cmd_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../datasets/episode_file.h"
#include "../datasets/maze.h"
#include "../kernels/error.h"
#include "commands.h"

namespace pwdice {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> files;
  std::string out, expert, expert_out, episodes;
  MixtureSpec mixture;
  MazeDataOptions maze;
  bool full_length = false, json = false;
};

struct Summary {
  double mean = 0, deviation = 0, least = 0, greatest = 0;
};

Summary summarise(const std::vector<double>& values) {
  Summary out;
  if (values.empty()) return out;
  const double n = static_cast<double>(values.size());
  for (const double v : values) out.mean += v / n;
  for (const double v : values) out.deviation += (v - out.mean) * (v - out.mean) / n;
  out.deviation = std::sqrt(out.deviation);
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  out.least = *least, out.greatest = *greatest;
  return out;
}

Json to_json(const Summary& s) {
  return {{"mean", s.mean}, {"std", s.deviation}, {"min", s.least}, {"max", s.greatest}};
}

Json describe(const Episodes& data, const MixtureSpec& spec) {
  const std::vector<EpisodeRange> episodes = find_episodes(data, spec.max_episode_steps);
  std::vector<double> lengths;
  int64_t terminal = 0, timeout = 0, full = 0;
  for (const EpisodeRange& e : episodes) {
    lengths.push_back(static_cast<double>(e.length()));
    terminal += e.terminal, timeout += e.timeout && !e.terminal;
    full += e.timeout && e.length() == spec.max_episode_steps;
  }
  const Transitions t = build_transitions(data, spec.rule, spec.absorbing, spec.max_episode_steps);
  Json out = {{"file", data.source},
              {"env_id", data.env_id},
              {"observation_dim", data.state_dim},
              {"action_dim", data.action_dim},
              {"rows", data.rows()},
              {"transitions", t.size()},
              {"transitions_bytes", t.bytes()},
              {"has_rewards", data.has_rewards()},
              {"has_next_observations", data.has_next()},
              {"has_timeouts", !data.timeouts.empty()},
              {"episodes", episodes.size()},
              {"episodes_terminal", terminal},
              {"episodes_timeout", timeout},
              {"episodes_full_length", full},
              {"episode_length", to_json(summarise(lengths))}};
  if (data.has_rewards()) out["return"] = to_json(summarise(episode_returns(data, episodes)));
  return out;
}

std::string line(const Json& s) {
  char text[120];
  std::snprintf(text, sizeof text, "%.1f ± %.1f (%.1f .. %.1f)", s["mean"].get<double>(),
                s["std"].get<double>(), s["min"].get<double>(), s["max"].get<double>());
  return text;
}

void print(const Json& d) {
  const auto number = [&](const char* key) { return static_cast<long long>(d[key].get<int64_t>()); };
  const std::string env = d["env_id"].get<std::string>();
  std::printf("%s%s%s\n", d["file"].get<std::string>().c_str(), env.empty() ? "" : ": ", env.c_str());
  std::printf("  observations  %lld columns, actions %lld\n", number("observation_dim"),
              number("action_dim"));
  std::printf("  rows          %lld, as transitions %lld (%.1f MB)\n", number("rows"), number("transitions"),
              static_cast<double>(number("transitions_bytes")) / 1e6);
  std::printf("  episodes      %lld: %lld ended in a terminal, %lld in a timeout (%lld of full length)\n",
              number("episodes"), number("episodes_terminal"), number("episodes_timeout"),
              number("episodes_full_length"));
  std::printf("  length        %s\n", line(d["episode_length"]).c_str());
  if (d.contains("return")) std::printf("  return        %s\n", line(d["return"]).c_str());
  std::printf("  optional      rewards %s, next_observations %s, timeouts %s\n",
              d["has_rewards"].get<bool>() ? "yes" : "no",
              d["has_next_observations"].get<bool>() ? "yes" : "no",
              d["has_timeouts"].get<bool>() ? "yes" : "no");
}

void report(const Options& options, const Json& result) {
  if (options.json) {
    std::printf("%s\n", result.dump(2).c_str());
  } else if (result.is_array()) {
    for (const Json& one : result) print(one);
  } else {
    print(result);
  }
}

void info(const Options& options) {
  Json all = Json::array();
  for (const std::string& file : options.files) all.push_back(describe(read_episodes(file), options.mixture));
  report(options, all);
}

// What a file may do without being damaged, but its owner should know.
std::vector<std::string> oddities(const Episodes& data, const MixtureSpec& spec) {
  std::vector<std::string> out;
  const auto large =
      std::count_if(data.actions.begin(), data.actions.end(), [](float a) { return std::abs(a) > 1.f; });
  if (large > 0)
    out.push_back(format_message("{} action values lie outside [-1, 1]", {static_cast<int64_t>(large)}));
  int64_t jumps = 0, both = 0;
  for (int64_t i = 0; i + 1 < data.rows() && data.has_next(); ++i) {
    const bool ends = data.terminals[i] || (!data.timeouts.empty() && data.timeouts[i]);
    const size_t bytes = static_cast<size_t>(data.state_dim) * sizeof(float);
    jumps += !ends && std::memcmp(data.next_rows().row(i), data.observation_rows().row(i + 1), bytes) != 0;
  }
  for (size_t i = 0; i < data.timeouts.size(); ++i) both += data.terminals[i] && data.timeouts[i];
  if (jumps > 0)
    out.push_back(format_message("next_observations differs from the following row {} times", {jumps}));
  if (both > 0) out.push_back(format_message("{} rows are both terminal and timeout", {both}));
  if (data.timeouts.empty()) out.push_back("there are no timeouts: episodes end after the step limit");
  const std::vector<EpisodeRange> episodes = find_episodes(data, spec.max_episode_steps);
  if (!episodes.empty() && !episodes.back().terminal && !episodes.back().timeout) {
    out.push_back("the last episode is cut off");
  }
  return out;
}

void validate(const Options& options) {
  Json all = Json::array();
  size_t bad = 0;
  for (const std::string& file : options.files) {
    Episodes data;
    try {
      data = read_episodes(file);
    } catch (const Error& error) {
      if (options.files.size() == 1 && !options.json) throw;
      ++bad;
      all.push_back({{"file", file}, {"valid", false}, {"error", error.what()}});
      if (!options.json) std::printf("%s: not valid: %s\n", file.c_str(), error.what());
      continue;
    }
    const std::vector<std::string> notes = oddities(data, options.mixture);
    all.push_back({{"file", file}, {"valid", true}, {"rows", data.rows()}, {"notes", notes}});
    if (options.json) continue;
    std::printf("%s: valid, %lld rows\n", file.c_str(), static_cast<long long>(data.rows()));
    for (const std::string& note : notes) std::printf("  note: %s\n", note.c_str());
  }
  if (options.json) std::printf("%s\n", all.dump(2).c_str());
  if (bad > 0) fail(ErrorCode::BadFile, "{} of {} files cannot be used", bad, options.files.size());
}

// "0,2,5-9" as episode numbers.
std::vector<EpisodeRange> pick(const std::string& text, const std::vector<EpisodeRange>& episodes) {
  std::vector<EpisodeRange> out;
  const int64_t count = static_cast<int64_t>(episodes.size());
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    int64_t first = -1, last = -1;
    const char* stop = part.data() + part.size();
    auto parsed = std::from_chars(part.data(), stop, first);
    last = first;
    if (parsed.ec == std::errc() && parsed.ptr != stop && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, stop, last);
    }
    PWDICE_CHECK(parsed.ec == std::errc() && parsed.ptr == stop && first >= 0 && first <= last,
                 "episodes '{}': '{}' is not a number or range such as 5-9", text, part);
    PWDICE_CHECK(last < count, "episodes '{}': there are only {} episodes", text, count);
    out.insert(out.end(), episodes.begin() + first, episodes.begin() + last + 1);
    begin = end + 1;
  }
  return out;
}

void subset(const Options& options) {
  const Episodes data = read_episodes(options.files.front());
  std::vector<EpisodeRange> chosen = find_episodes(data, options.mixture.max_episode_steps);
  if (!options.episodes.empty()) chosen = pick(options.episodes, chosen);
  if (options.full_length) {
    std::erase_if(chosen, [&](const EpisodeRange& e) {
      return !e.timeout || e.length() != options.mixture.max_episode_steps;
    });
  }
  PWDICE_CHECK(!chosen.empty(), "{}: no episode is left", data.source);
  Episodes out = select_episodes(data, chosen);
  write_episodes(options.out, out, {{"made_from", data.source}});
  out.source = options.out;
  report(options, describe(out, options.mixture));
}

// Files one after another; with an expert file, the paper's mixture: E into one file, I into the other.
void merge(const Options& options) {
  std::vector<Episodes> parts;
  Json made = Json::array();
  if (!options.expert.empty()) {
    PWDICE_CHECK(!options.expert_out.empty(), "merge: --expert needs --expert-out for E");
    const Episodes expert = read_episodes(options.expert);
    const ExpertSplit split = split_expert(expert, options.mixture);
    Episodes shown = select_episodes(expert, split.expert);
    shown.action_dim = 0, shown.actions.clear(), shown.rewards.clear();  // states alone
    write_episodes(options.expert_out, shown, {{"made_from", options.expert}});
    shown.source = options.expert_out;
    made.push_back(describe(shown, options.mixture));
    if (!split.offline.empty()) parts.push_back(select_episodes(expert, split.offline));
  }
  for (const std::string& file : options.files) parts.push_back(read_episodes(file));
  PWDICE_CHECK(!parts.empty(), "merge: nothing to put together");
  Episodes out = concatenate(parts, options.mixture.max_episode_steps);
  write_episodes(options.out, out, {{"made_from", out.source}});
  out.source = options.out;
  made.push_back(describe(out, options.mixture));
  report(options, made);
}

void generate(const Options& options) {
  std::error_code error;
  fs::create_directories(options.out, error);
  const fs::path directory = options.out;
  PWDICE_CHECK(fs::is_directory(directory), "{} is not a directory", options.out);
  const std::string seed = std::to_string(options.maze.seed);
  Json made = Json::array();
  for (const bool is_expert : {true, false}) {
    Episodes data = is_expert ? maze_expert_data(options.maze) : maze_offline_data(options.maze);
    const fs::path path = directory / (is_expert ? "maze_expert.hdf5" : "maze_offline.hdf5");
    write_episodes(path, data, {{"made_from", data.source}, {"seed", seed}});
    data.source = path.string();
    made.push_back(describe(data, options.mixture));
  }
  report(options, made);
}

CLI::App* add(CLI::App& data, const std::shared_ptr<Options>& options, const char* name, const char* about,
              void (*run)(const Options&)) {
  CLI::App* sub = data.add_subcommand(name, about);
  sub->add_flag("--json", options->json, "print JSON");
  sub->add_option("--max-episode-steps", options->mixture.max_episode_steps, "time limit of an episode")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  sub->callback([options, run] { run(*options); });
  return sub;
}

}  // namespace

void add_data_command(CLI::App& app) {
  CLI::App* data =
      app.add_subcommand("data", "Inspect, check, cut, merge and make data sets (D4RL or Minari HDF5)");
  data->require_subcommand(1);
  const auto options = std::make_shared<Options>();
  CLI::App* sub = add(*data, options, "info", "What a file holds", info);
  sub->add_option("files", options->files, "data files")->required();

  sub = add(*data, options, "validate", "Read everything and check it", validate);
  sub->add_option("files", options->files, "data files")->required();

  sub = add(*data, options, "subset", "Some episodes of a file", subset);
  sub->add_option("file", options->files, "data file")->required()->expected(1);
  sub->add_option("--out", options->out, "file to write")->required();
  sub->add_option("--episodes", options->episodes, "numbers and ranges from 0, such as 0,2,5-9");
  sub->add_flag("--full-length", options->full_length, "only those that reach the time limit");

  sub = add(*data, options, "merge", "Files into one; with --expert, the paper's mixture of E and I", merge);
  sub->add_option("files", options->files, "data files");
  sub->add_option("--out", options->out, "file to write: I")->required();
  sub->add_option("--expert", options->expert, "file of expert trajectories");
  sub->add_option("--expert-out", options->expert_out, "file to write: E");
  sub->add_option("--expert-episode", options->mixture.expert_episode,
                  "first of E; -1 = first of full length")
      ->capture_default_str();
  sub->add_option("--expert-count", options->mixture.expert_episodes, "trajectories in E; -1 = all")
      ->capture_default_str();
  sub->add_option("--offline-expert", options->mixture.offline_expert, "expert trajectories in I; -1 = all")
      ->capture_default_str();
  sub->add_flag("!--include-expert", options->mixture.exclude_expert, "E's own trajectories may be in I too");

  sub =
      add(*data, options, "generate", "The embedded maze: maze_expert.hdf5 and maze_offline.hdf5", generate);
  sub->add_option("--out", options->out, "directory")->required();
  sub->add_option("--seed", options->maze.seed, "random seed")->capture_default_str();
  sub->add_option("--transitions", options->maze.transitions, "offline rows")->capture_default_str();
  sub->add_option("--expert-episodes", options->maze.expert_episodes, "expert episodes")
      ->capture_default_str();
  sub->add_option("--random-share", options->maze.random_share, "offline rows from random actions")
      ->capture_default_str();
  tools::add_collect_command(*data);
}

}  // namespace pwdice
