// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "episode_file.h"

#include <algorithm>
#include <charconv>

#include "../kernels/error.h"

namespace pwdice {
namespace {

constexpr int64_t kChunkRows = 16384;
constexpr int kGzip = 4;

std::string at(const Hdf5Reader& file, std::string_view path) {
  return file.name() + ": '" + std::string(path) + "'";
}

std::string text(const std::vector<int64_t>& shape) {
  std::string out;
  for (const int64_t d : shape) out += (out.empty() ? "" : " x ") + std::to_string(d);
  return out.empty() ? "scalar" : out;
}

// N x d; a vector counts as one column. `rows` < 0 accepts any number.
Hdf5Info matrix_info(const Hdf5Reader& file, std::string_view path, int64_t rows) {
  Hdf5Info info = file.info(path);
  if (info.shape.size() == 1) info.shape.push_back(1);
  if (info.shape.size() != 2 || info.shape[1] < 1 || (rows >= 0 && info.shape[0] != rows)) {
    fail(ErrorCode::BadFile, "{} has shape {}, expected {} rows and some columns", at(file, path),
         text(info.shape), rows < 0 ? std::string("any number of") : std::to_string(rows));
  }
  if (info.type != Hdf5Type::Float) fail(ErrorCode::BadFile, "{} does not hold floats", at(file, path));
  return info;
}

// N or N x 1.
void check_column(const Hdf5Reader& file, std::string_view path, const Hdf5Info& info, int64_t rows) {
  const bool column = info.shape.size() == 2 && info.shape[1] == 1;
  if ((info.shape.size() != 1 && !column) || info.shape[0] != rows) {
    fail(ErrorCode::BadFile, "{} has shape {}, expected {} values", at(file, path), text(info.shape), rows);
  }
}

std::vector<float> read_rewards(const Hdf5Reader& file, const std::string& path, int64_t rows) {
  const Hdf5Info info = file.info(path);
  check_column(file, path, info, rows);
  if (info.type == Hdf5Type::Float) return file.read<float>(path);
  const std::vector<int64_t> whole = file.read<int64_t>(path);
  std::vector<float> out(whole.size());
  std::transform(whole.begin(), whole.end(), out.begin(), [](int64_t v) { return static_cast<float>(v); });
  return out;
}

// Bools, integers or floats; anything but 0 and 1 is refused.
std::vector<uint8_t> read_flags(const Hdf5Reader& file, const std::string& path, int64_t rows) {
  const Hdf5Info info = file.info(path);
  check_column(file, path, info, rows);
  std::vector<uint8_t> out;
  bool valid = true;
  if (info.type == Hdf5Type::Float) {
    for (const float v : file.read<float>(path)) {
      valid = valid && (v == 0.f || v == 1.f);
      out.push_back(v == 1.f);
    }
  } else {
    out = file.read<uint8_t>(path);
    valid = std::all_of(out.begin(), out.end(), [](uint8_t v) { return v <= 1; });
  }
  if (!valid) fail(ErrorCode::BadFile, "{} holds values other than 0 and 1", at(file, path));
  return out;
}

std::string read_env_id(const Hdf5Reader& file) {
  return file.has_attribute("", "env_id") ? file.string_attribute("", "env_id") : "";
}

Episodes read_d4rl(const Hdf5Reader& file) {
  Episodes out;
  out.source = file.name();
  out.env_id = read_env_id(file);
  const Hdf5Info observations = matrix_info(file, "observations", -1);
  const int64_t rows = observations.shape[0];
  out.state_dim = observations.shape[1];
  const bool acts = file.has("actions");  // an expert may show states alone
  if (acts) out.action_dim = matrix_info(file, "actions", rows).shape[1];
  out.terminals = read_flags(file, "terminals", rows);
  if (file.has("timeouts")) out.timeouts = read_flags(file, "timeouts", rows);
  out.observations = file.read<float>("observations");
  if (acts) out.actions = file.read<float>("actions");
  if (file.has("rewards")) out.rewards = read_rewards(file, "rewards", rows);
  if (file.has("next_observations")) {
    const int64_t width = matrix_info(file, "next_observations", rows).shape[1];
    if (width != out.state_dim) {
      fail(ErrorCode::BadFile, "{} has {} columns, observations have {}", at(file, "next_observations"),
           width, out.state_dim);
    }
    out.next_observations = file.read<float>("next_observations");
  }
  return out;
}

// One group episode_k: T + 1 observations and T of everything else.
void append_minari(const Hdf5Reader& file, const std::string& group, Episodes& out) {
  const std::string observations = group + "/observations", actions = group + "/actions";
  if (file.is_group(observations)) {
    fail(ErrorCode::BadFile, "{} is a dictionary of observations; only plain arrays are read",
         at(file, observations));
  }
  const Hdf5Info seen = matrix_info(file, observations, -1);
  const int64_t steps = seen.shape[0] - 1, s = seen.shape[1];
  if (steps < 1)
    fail(ErrorCode::BadFile, "{} has {} rows, expected at least 2", at(file, observations), steps + 1);
  const int64_t a = matrix_info(file, actions, steps).shape[1];
  if (out.state_dim == 0) out.state_dim = s, out.action_dim = a;
  if (s != out.state_dim || a != out.action_dim) {
    fail(ErrorCode::BadFile, "{} has {} observations and {} actions, the episodes before it {} and {}",
         at(file, group), s, a, out.state_dim, out.action_dim);
  }
  const std::vector<float> states = file.read<float>(observations), acts = file.read<float>(actions);
  out.observations.insert(out.observations.end(), states.begin(), states.end() - s);
  out.next_observations.insert(out.next_observations.end(), states.begin() + s, states.end());
  out.actions.insert(out.actions.end(), acts.begin(), acts.end());
  const std::vector<float> rewards = read_rewards(file, group + "/rewards", steps);
  out.rewards.insert(out.rewards.end(), rewards.begin(), rewards.end());
  const std::vector<uint8_t> terminals = read_flags(file, group + "/terminations", steps);
  const std::vector<uint8_t> timeouts = read_flags(file, group + "/truncations", steps);
  out.terminals.insert(out.terminals.end(), terminals.begin(), terminals.end());
  out.timeouts.insert(out.timeouts.end(), timeouts.begin(), timeouts.end());
  // A group is an episode, whether or not its last row says how it ended.
  if (out.terminals.back() == 0) out.timeouts.back() = 1;
}

constexpr std::string_view kEpisode = "episode_";

Episodes read_minari(const Hdf5Reader& file) {
  std::vector<std::pair<int64_t, std::string>> groups;  // in order of their number, not of their name
  for (const std::string& child : file.children("")) {
    if (!child.starts_with(kEpisode)) continue;
    int64_t number = -1;
    const char* end = child.data() + child.size();
    const auto [stop, error] = std::from_chars(child.data() + kEpisode.size(), end, number);
    if (error != std::errc() || stop != end)
      fail(ErrorCode::BadFile, "{} is not an episode number", at(file, child));
    groups.emplace_back(number, child);
  }
  std::sort(groups.begin(), groups.end());
  Episodes out;
  out.source = file.name();
  out.env_id = read_env_id(file);
  for (const auto& [number, group] : groups) append_minari(file, group, out);
  return out;
}

std::filesystem::path locate(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  for (const char* inside : {"main_data.hdf5", "data/main_data.hdf5"}) {
    if (std::filesystem::exists(path / inside, error)) return path / inside;
  }
  fail(ErrorCode::BadFile, "{} is a directory without data/main_data.hdf5", path.string());
}

}  // namespace

EpisodeLayout detect_layout(const Hdf5Reader& file) {
  if (file.has("observations")) return EpisodeLayout::D4rl;
  if (file.has("episode_0")) return EpisodeLayout::Minari;
  fail(ErrorCode::BadFile, "{} has neither 'observations' (D4RL) nor 'episode_0' (Minari)", file.name());
}

Episodes read_episodes(const Hdf5Reader& file) {
  Episodes out = detect_layout(file) == EpisodeLayout::D4rl ? read_d4rl(file) : read_minari(file);
  check_episodes(out);
  return out;
}

Episodes read_episodes(const std::filesystem::path& path, const Hdf5Limits& limits) {
  return read_episodes(Hdf5Reader(locate(path), limits));
}

void write_episodes(const std::filesystem::path& path, const Episodes& data,
                    const FileAttributes& attributes) {
  check_episodes(data);
  Hdf5Writer file(path);
  const int64_t rows = data.rows();
  const int64_t column[] = {rows}, states[] = {rows, data.state_dim}, actions[] = {rows, data.action_dim};
  const auto storage = [](int64_t width) {
    return Hdf5Storage{
        width == 0 ? std::vector<int64_t>{kChunkRows} : std::vector<int64_t>{kChunkRows, width}, kGzip, true};
  };
  file.write<float>("observations", data.observations, states, storage(data.state_dim));
  if (data.action_dim > 0) file.write<float>("actions", data.actions, actions, storage(data.action_dim));
  file.write_bool("terminals", data.terminals, column, storage(0));
  if (!data.timeouts.empty()) file.write_bool("timeouts", data.timeouts, column, storage(0));
  if (data.has_rewards()) file.write<float>("rewards", data.rewards, column, storage(0));
  if (data.has_next())
    file.write<float>("next_observations", data.next_observations, states, storage(data.state_dim));
  if (!data.env_id.empty()) file.attribute("", "env_id", data.env_id);
  for (const auto& attribute : attributes) {
    std::visit([&](const auto& value) { file.attribute("", attribute.first, value); }, attribute.second);
  }
  file.commit();
}

Mixture read_mixture(const std::filesystem::path& expert, const std::vector<std::filesystem::path>& offline,
                     const MixtureSpec& spec, const Hdf5Limits& limits) {
  const Episodes shown = read_episodes(expert, limits);
  std::vector<Episodes> others;
  for (const std::filesystem::path& path : offline) others.push_back(read_episodes(path, limits));
  return build_mixture(shown, std::move(others), spec);
}

}  // namespace pwdice
