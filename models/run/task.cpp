// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "task.h"

#include "../../datasets/episode_file.h"
#include "../../datasets/maze.h"
#include "../../datasets/mujoco_env.h"
#include "../../kernels/error.h"

namespace pwdice {
namespace {

constexpr double kDistortion = 4;  // the paper's deviation

MixtureSpec mixture_spec(const Config& config) {
  MixtureSpec spec;
  spec.expert_episode = config.data.expert_trajectory;
  spec.expert_episodes = config.data.expert_trajectories;
  spec.offline_expert = config.data.expert_in_agnostic;
  spec.rule = config.data.rule == "exact" ? TransitionRule::Exact : TransitionRule::Reference;
  spec.absorbing = config.data.absorbing == "pwdice"    ? AbsorbingRule::PwDice
                   : config.data.absorbing == "smodice" ? AbsorbingRule::Smodice
                                                        : AbsorbingRule::None;
  spec.max_episode_steps = config.data.max_episode_steps;
  spec.weighting = expert_weighting(config.data.rho);
  spec.gamma = config.gamma;
  spec.normalizer.eps = config.data.normalise_eps;
  spec.initial = config.data.initial == "agnostic" ? InitialStates::Agnostic
                 : config.data.initial == "expert" ? InitialStates::Expert
                                                   : InitialStates::Both;
  if (config.data.distorted) spec.distortion = kDistortion, spec.distortion_seed = static_cast<uint64_t>(config.seed);
  return spec;
}

}  // namespace

Mixture make_mixture(const Config& config) {
  MixtureSpec spec = mixture_spec(config);
  PWDICE_CHECK(config.data.source == "maze" || (!config.data.expert.empty() && !config.data.agnostic.empty()),
               "config: data.source = \"files\" needs data.expert and data.agnostic");
  if (config.data.source == "files") return read_mixture(config.data.expert, {config.data.agnostic}, spec);
  MazeDataOptions maze;
  maze.seed = static_cast<uint64_t>(config.seed);
  maze.transitions = config.data.maze_transitions;
  maze.expert_episodes = config.data.maze_expert_episodes;
  spec.expert_episodes = maze.expert_episodes;
  spec.expert_episode = 0;
  spec.offline_expert = 0;  // nobody who does the task shows how
  spec.max_episode_steps = make_maze()->info().max_steps;
  std::vector<Episodes> offline;
  offline.push_back(maze_offline_data(maze));
  return build_mixture(maze_expert_data(maze), std::move(offline), spec);
}

std::string environment_name(const Config& config) {
  return config.data.environment.empty() && config.data.source == "maze" ? "maze" : config.data.environment;
}

EnvironmentFactory make_environment(const Config& config) {
  const std::string name = environment_name(config);
  return name.empty() ? EnvironmentFactory{} : environment_by_name(name);
}

EnvironmentFactory environment_by_name(const std::string& name) {
  if (name == "maze") return [] { return make_maze(); };
  if (is_mujoco_task(name)) return [name] { return make_mujoco(name); };
  fail(ErrorCode::InvalidArgument, "environment {}: there are maze, hopper, halfcheetah, walker2d, ant and ant111", name);
}

}  // namespace pwdice
