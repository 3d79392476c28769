// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "../datasets/maze.h"
#include "../datasets/mujoco_env.h"
#include "../host/checkpoint.h"
#include "../kernels/error.h"
#include "../models/run/svg.h"
#include "../models/run/task.h"
#include "png.h"

namespace pwdice::tools {
namespace {

constexpr int kWidth = 320, kHeight = 240;
constexpr int kMoments = 10, kColumns = 5;
constexpr double kFilmDelay = 0.04, kFilmSeconds = 8;  // between two pictures of a film, and all of it

std::string ending(const std::string& path) { return std::filesystem::path(path).extension().string(); }

// The states of an episode, from the reset to the last step, shown to `see`.
template <class See>
void play(Environment& environment, const Controller& controller, uint64_t seed, See&& see) {
  const EnvironmentInfo& info = environment.info();
  std::vector<float> observation(static_cast<size_t>(info.observation_dim)),
      action(static_cast<size_t>(info.action_dim));
  environment.reset(seed, {observation.data(), info.observation_dim});
  see(0, observation);
  for (int64_t step = 1; step <= info.max_steps; ++step) {
    controller({observation.data(), info.observation_dim}, {action.data(), info.action_dim});
    const bool ends =
        environment.step({action.data(), info.action_dim}, {observation.data(), info.observation_dim})
            .terminated;
    see(step, observation);
    if (ends) break;
  }
}

void record_maze(const Controller& controller, uint64_t seed, const std::string& path) {
  svg::Points way;
  play(*make_maze(), controller, seed,
       [&](int64_t, const std::vector<float>& o) { way.emplace_back(o[0], o[1]); });
  const std::vector<std::string> rows(maze_layout().rows.begin(), maze_layout().rows.end());
  write_file_atomically(path, svg::maze({"The policy's way", "", "", 520, 520}, rows,
                                        {{"policy", "#0057b8", 2.5, 0.9, {way}}}));
}

void record_mujoco(const std::string& name, const Controller& controller, uint64_t seed,
                   const std::string& path) {
  const auto environment = make_mujoco(name);
  std::vector<Image> pictures;
  if (ending(path) == ".apng") {
    const int64_t every = std::max<int64_t>(1, std::lround(kFilmDelay / environment->seconds_per_step()));
    play(*environment, controller, seed, [&](int64_t step, const std::vector<float>&) {
      if (static_cast<double>(step) * environment->seconds_per_step() > kFilmSeconds) return;
      if (step % every == 0) pictures.push_back(environment->draw(kWidth, kHeight));
    });
    return write_file_atomically(
        path, encode_png(pictures, static_cast<double>(every) * environment->seconds_per_step()));
  }
  int64_t length = 0;  // the first time through, for the moments; the second is the same
  play(*environment, controller, seed, [&](int64_t step, const std::vector<float>&) { length = step; });
  play(*environment, controller, seed, [&](int64_t step, const std::vector<float>&) {
    const auto drawn = static_cast<int64_t>(pictures.size());
    if (drawn < kMoments && step == drawn * length / (kMoments - 1))
      pictures.push_back(environment->draw(kWidth, kHeight));
  });
  write_file_atomically(path, encode_png({tile(pictures, kColumns)}));
}

}  // namespace

void check_recordable(const std::string& environment, const std::string& path) {
  const std::string end = ending(path);
  if (environment == "maze") {
    PWDICE_CHECK(end == ".svg", "--record {}: the maze is drawn as a file that ends in .svg", path);
  } else {
    PWDICE_CHECK(end == ".png" || end == ".apng",
                 "--record {}: expected a file that ends in .png (a strip) or .apng (a film)", path);
  }
}

void record_episode(const std::string& environment, const Controller& controller, uint64_t seed,
                    const std::string& path) {
  check_recordable(environment, path);
  environment == "maze" ? record_maze(controller, seed, path)
                        : record_mujoco(environment, controller, seed, path);
}

}  // namespace pwdice::tools
