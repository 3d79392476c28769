// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "diagnostics.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "../../datasets/maze.h"
#include "../policy_runtime.h"
#include "task.h"

namespace pwdice {
namespace {

using nlohmann::json;

constexpr int64_t kMapRows = 1200;      // points of each kind on the map
constexpr int kBins = 40;               // of the histogram
constexpr double kLowest = -12;         // log10 of the smallest weight it shows
constexpr int64_t kMazeWays = 60;       // ways of the data that are drawn

json weight_histogram(const std::vector<float>& w, const std::vector<uint8_t>& source) {
  std::vector<int64_t> expert(kBins, 0), agnostic(kBins, 0);
  for (size_t i = 0; i < w.size(); ++i) {
    const double log_w = w[i] > 0 ? std::log10(w[i]) : kLowest;
    const int bin = std::clamp(static_cast<int>((log_w - kLowest) / -kLowest * kBins), 0, kBins - 1);
    ++(source[i] == 0 ? expert : agnostic)[static_cast<size_t>(bin)];
  }
  const WeightSummary summary = summarise(w, source);
  return {{"lowest", kLowest}, {"expert", expert}, {"agnostic", agnostic},
          {"expert_share", summary.expert_share}, {"effective", summary.effective}};
}

// Rows spread evenly over a table.
std::vector<float> thin(Mat<const float> table, int64_t want, std::vector<int64_t>* chosen) {
  std::vector<float> out;
  const int64_t count = std::min(want, table.rows);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t i = k * table.rows / count;
    out.insert(out.end(), table.row(i), table.row(i) + table.cols);
    if (chosen != nullptr) chosen->push_back(i);
  }
  return out;
}

json plane_map(Mat<const float> rows, int64_t expert_rows) {
  const std::vector<float> plane = principal_plane(rows);
  json expert = json::array(), data = json::array();
  for (int64_t i = 0; i < rows.rows; ++i) {
    (i < expert_rows ? expert : data).push_back({std::round(1000 * plane[2 * i]) / 1000, std::round(1000 * plane[2 * i + 1]) / 1000});
  }
  return {{"expert", expert}, {"data", data}};
}

json maps(Context& ctx, Trainer& trainer, const std::vector<float>& w) {
  const DataTables& data = trainer.data();
  const int64_t d = data.state_dim(), n = data.transitions();
  const std::vector<float> expert = download(ctx, Vec<const float>{data.expert_states().data, data.expert_states().size()});
  const std::vector<float> table = download(ctx, Vec<const float>{data.states().data, n * d});
  std::vector<int64_t> chosen;
  std::vector<float> rows = thin({expert.data(), data.expert_states().rows, d}, kMapRows, nullptr);
  const int64_t expert_rows = static_cast<int64_t>(rows.size()) / d;
  const std::vector<float> states = thin({table.data(), n, d}, kMapRows, &chosen);
  rows.insert(rows.end(), states.begin(), states.end());
  const Mat<const float> all(rows.data(), static_cast<int64_t>(rows.size()) / d, d);

  json out{{"states", plane_map(all, expert_rows)}};
  const std::vector<float> g = trainer.embeddings(ctx, all);
  if (!g.empty()) out["embeddings"] = plane_map({g.data(), all.rows, static_cast<int64_t>(g.size()) / all.rows}, expert_rows);
  for (int64_t i : chosen) out["weights"].push_back(w[static_cast<size_t>(i)]);
  return out;
}

json ways(const Episodes& episodes, int64_t most, int64_t max_steps) {
  json out = json::array();
  const auto ranges = find_episodes(episodes, max_steps);
  const int64_t count = std::min<int64_t>(most, static_cast<int64_t>(ranges.size()));
  for (int64_t k = 0; k < count; ++k) {
    const EpisodeRange& range = ranges[static_cast<size_t>(k * static_cast<int64_t>(ranges.size()) / count)];
    json way = json::array();
    for (int64_t i = range.begin; i < range.end; ++i) {
      const float* o = episodes.observation_rows().row(i);
      way.push_back({std::round(100 * o[0]) / 100, std::round(100 * o[1]) / 100});
    }
    out.push_back(way);
  }
  return out;
}

json maze_picture(const Config& config, const EnvironmentFactory& environment, PolicyRuntime& policy) {
  MazeDataOptions options;
  options.seed = static_cast<uint64_t>(config.seed);
  options.transitions = config.data.maze_transitions;
  options.expert_episodes = config.data.maze_expert_episodes;
  const auto act = [&policy](Mat<const float> observations, Mat<float> actions) {
    for (int64_t i = 0; i < observations.rows; ++i) {
      policy.act(observations.row(i), static_cast<size_t>(observations.cols), actions.row(i), static_cast<size_t>(actions.cols));
    }
  };
  const int64_t steps = environment()->info().max_steps;
  json rows = json::array();
  for (const std::string_view row : maze_layout().rows) rows.push_back(std::string(row));
  return {{"rows", rows},
          {"expert", ways(maze_expert_data(options), 5, steps)},
          {"data", ways(maze_offline_data(options), kMazeWays, steps)},
          {"policy", ways(rollout(environment, act, {.episodes = 5, .seed = 10000}), 5, steps)}};
}

}  // namespace

WeightSummary summarise(const std::vector<float>& w, const std::vector<uint8_t>& source) {
  double sum = 0, squares = 0, from_expert = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    sum += w[i], squares += static_cast<double>(w[i]) * w[i];
    if (source[i] == 0) from_expert += w[i];
  }
  return sum > 0 ? WeightSummary{sum * sum / squares, from_expert / sum} : WeightSummary{};
}

std::vector<float> principal_plane(Mat<const float> rows) {
  const Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> table(rows.data, rows.rows, rows.cols);
  const Eigen::MatrixXd x = table.cast<double>();
  const Eigen::MatrixXd centred = x.rowwise() - x.colwise().mean();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(centred.transpose() * centred);
  const Eigen::Index k = std::min<Eigen::Index>(2, rows.cols);
  const Eigen::MatrixXd plane = centred * solver.eigenvectors().rightCols(k).rowwise().reverse();
  std::vector<float> out(static_cast<size_t>(2 * rows.rows), 0.f);
  for (Eigen::Index i = 0; i < plane.rows(); ++i) {
    for (Eigen::Index j = 0; j < k; ++j) out[static_cast<size_t>(2 * i + j)] = static_cast<float>(plane(i, j));
  }
  return out;
}

std::string diagnostics_json(Context& ctx, const Config& config, Trainer& trainer, const EnvironmentFactory& environment) {
  const std::vector<float> w = trainer.weights(ctx);
  json out{{"weights", weight_histogram(w, trainer.data().source())}, {"map", maps(ctx, trainer, w)}};
  if (environment_name(config) == "maze" && config.data.source == "maze") {
    PolicyRuntime policy(trainer.policy(ctx));
    out["maze"] = maze_picture(config, environment, policy);
  }
  return out.dump();
}

}  // namespace pwdice
