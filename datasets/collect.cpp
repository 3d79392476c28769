// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "collect.h"

#include <algorithm>
#include <cmath>

#include "../host/rng.h"
#include "../kernels/cpu/parallel.h"
#include "../kernels/error.h"
#include "random_numbers.h"

namespace pwdice {
namespace {

struct Player {
  std::unique_ptr<Environment> environment;
  Controller controller;
};

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void act(const Controller& controller, double noise, RandomNumbers& random, Vec<const float> observation,
         Vec<float> action) {
  if (controller) controller(observation, action);
  for (int64_t k = 0; k < action.size; ++k) {
    if (!controller) {
      action[k] = static_cast<float>(random.uniform(-1, 1));
    } else if (noise > 0) {
      action[k] += static_cast<float>(noise * random.normal());
    }
    action[k] = std::clamp(action[k], -1.f, 1.f);
  }
}

bool finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

Episodes play(Player& player, int64_t episode, const CollectOptions& options) {
  const EnvironmentInfo& info = player.environment->info();
  const uint64_t seed = options.seed + static_cast<uint64_t>(episode);
  RandomNumbers random(random_stream(seed, "collect/actions"));
  std::vector<float> observation(static_cast<size_t>(info.observation_dim)),
      action(static_cast<size_t>(info.action_dim));
  const Vec<float> seen{observation.data(), info.observation_dim}, done{action.data(), info.action_dim};
  Episodes out;
  player.environment->reset(seed, seen);
  for (int64_t step = 0; step < info.max_steps; ++step) {
    append(out.observations, observation);
    StepResult result;
    try {
      act(player.controller, options.noise, random, seen, done);
      result = player.environment->step(done, seen);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::NotFinite) throw;
      fail(ErrorCode::NotFinite, "collect: episode {}, step {}: {}", episode, step, error.what());
    }
    if (!finite(observation) || !std::isfinite(result.reward)) {
      fail(ErrorCode::NotFinite, "collect: episode {}, step {}: {}: the simulation became unstable", episode,
           step, info.name);
    }
    append(out.actions, action);
    append(out.next_observations, observation);
    out.rewards.push_back(static_cast<float>(result.reward));
    out.terminals.push_back(result.terminated);
    out.timeouts.push_back(!result.terminated && step + 1 == info.max_steps);
    if (result.terminated) break;
  }
  return out;
}

// Keeps the first `rows` of the last episode.
void cut(Episodes& data, int64_t rows) {
  const size_t n = static_cast<size_t>(rows), s = static_cast<size_t>(data.state_dim),
               a = static_cast<size_t>(data.action_dim);
  data.observations.resize(n * s), data.next_observations.resize(n * s), data.actions.resize(n * a);
  data.rewards.resize(n), data.terminals.resize(n), data.timeouts.resize(n);
  data.timeouts.back() = !data.terminals.back();
}

}  // namespace

Collection collect(const EnvironmentFactory& make, const ControllerFactory& make_controller,
                   const CollectOptions& options) {
  PWDICE_CHECK(options.episodes >= 0 && options.transitions >= 0 &&
                   (options.episodes > 0) != (options.transitions > 0),
               "collect: {} episodes and {} transitions, expected one of the two", options.episodes,
               options.transitions);
  PWDICE_CHECK(options.noise >= 0 && std::isfinite(options.noise) && options.threads > 0,
               "collect: noise {}, {} threads", options.noise, options.threads);
  constexpr int64_t kWave = 8;  // episodes per thread between two looks at the number of rows
  std::vector<Player> players(static_cast<size_t>(options.threads));
  for (Player& player : players) player = {make(), make_controller ? make_controller() : Controller{}};
  const EnvironmentInfo& info = players[0].environment->info();
  Collection out;
  out.data.source = out.data.env_id = info.name;
  out.data.state_dim = info.observation_dim, out.data.action_dim = info.action_dim;
  cpu::ThreadPool pool(options.threads);
  const auto enough = [&](int64_t episodes) {
    return options.episodes > 0 ? episodes >= options.episodes : out.data.rows() >= options.transitions;
  };
  for (int64_t first = 0; !enough(first);) {
    int64_t wave = kWave * options.threads;
    if (options.episodes > 0) wave = std::min(wave, options.episodes - first);
    std::vector<Episodes> played(static_cast<size_t>(wave));
    pool.parallel_for(wave, [&](int64_t k, int thread) {
      played[static_cast<size_t>(k)] = play(players[static_cast<size_t>(thread)], first + k, options);
    });
    for (const Episodes& episode : played) {
      if (enough(first++)) break;
      append(out.data.observations, episode.observations),
          append(out.data.next_observations, episode.next_observations);
      append(out.data.actions, episode.actions), append(out.data.rewards, episode.rewards);
      append(out.data.terminals, episode.terminals), append(out.data.timeouts, episode.timeouts);
      const bool whole = options.transitions == 0 || out.data.rows() <= options.transitions;
      if (!whole) cut(out.data, options.transitions);
      double total = 0;
      for (const float reward : episode.rewards) total += reward;
      if (whole) out.returns.push_back(total);
    }
  }
  return out;
}

}  // namespace pwdice
