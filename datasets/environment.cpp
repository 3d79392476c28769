// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "environment.h"

#include <algorithm>
#include <cmath>

#include "../kernels/cpu/parallel.h"
#include "../kernels/error.h"

namespace pwdice {
namespace {

struct Player {
  std::unique_ptr<Environment> environment;
  bool playing = true;
  Episodes record;  // kept only when asked for
  double total = 0;
  int64_t length = 0;
};

void check_finite(const EnvironmentInfo& info, int64_t episode, int64_t step, Vec<const float> observation,
                  double reward) {
  bool finite = std::isfinite(reward);
  for (int64_t k = 0; k < observation.size; ++k) finite = finite && std::isfinite(observation[k]);
  if (!finite) {
    fail(ErrorCode::NotFinite, "{}: the simulation of episode {} became unstable at step {}", info.name,
         episode, step);
  }
}

void append(std::vector<float>& to, const float* from, int64_t n) { to.insert(to.end(), from, from + n); }

std::vector<Player> play(const EnvironmentFactory& make, const Policy& policy, const RolloutOptions& options,
                         bool keep) {
  PWDICE_CHECK(options.episodes > 0 && options.threads > 0, "rollout: {} episodes on {} threads",
               options.episodes, options.threads);
  std::vector<Player> players(options.episodes);
  for (Player& player : players) player.environment = make();
  const EnvironmentInfo& info = players[0].environment->info();
  const int64_t s = info.observation_dim, a = info.action_dim;
  std::vector<float> observations(options.episodes * s), actions(options.episodes * a);
  cpu::ThreadPool pool(static_cast<int>(std::min<int64_t>(options.threads, options.episodes)));

  pool.parallel_for(options.episodes, [&](int64_t k, int) {
    players[k].environment->reset(options.seed + static_cast<uint64_t>(k), {observations.data() + k * s, s});
  });
  for (int64_t step = 0; step < info.max_steps; ++step) {
    if (std::none_of(players.begin(), players.end(), [](const Player& p) { return p.playing; })) break;
    policy({observations.data(), options.episodes, s}, {actions.data(), options.episodes, a});
    pool.parallel_for(options.episodes, [&](int64_t k, int) {
      Player& player = players[k];
      if (!player.playing) return;
      const Vec<float> observation{observations.data() + k * s, s}, action{actions.data() + k * a, a};
      if (keep) append(player.record.observations, observation.data, s);
      if (keep) append(player.record.actions, action.data, a);
      const StepResult result = player.environment->step(action, observation);
      check_finite(info, k, step, observation, result.reward);
      player.total += result.reward;
      player.length = step + 1;
      player.playing = !result.terminated && step + 1 < info.max_steps;
      if (!keep) return;
      append(player.record.next_observations, observation.data, s);
      player.record.rewards.push_back(static_cast<float>(result.reward));
      player.record.terminals.push_back(result.terminated);
      player.record.timeouts.push_back(!result.terminated && step + 1 == info.max_steps);
    });
  }
  return players;
}

}  // namespace

Evaluation evaluate(const EnvironmentFactory& make, const Policy& policy, const RolloutOptions& options) {
  const std::vector<Player> players = play(make, policy, options, false);
  Evaluation out;
  double square = 0;
  for (const Player& player : players) {
    out.returns.push_back(player.total);
    out.lengths.push_back(player.length);
    out.mean += player.total / static_cast<double>(options.episodes);
  }
  for (const double r : out.returns) square += (r - out.mean) * (r - out.mean);
  out.deviation = std::sqrt(square / static_cast<double>(options.episodes));
  out.least = *std::min_element(out.returns.begin(), out.returns.end());
  out.greatest = *std::max_element(out.returns.begin(), out.returns.end());
  out.score = players[0].environment->info().normalised_score(out.mean);
  return out;
}

Episodes rollout(const EnvironmentFactory& make, const Policy& policy, const RolloutOptions& options) {
  std::vector<Player> players = play(make, policy, options, true);
  const EnvironmentInfo& info = players[0].environment->info();
  std::vector<Episodes> parts;
  for (Player& player : players) {
    player.record.state_dim = info.observation_dim, player.record.action_dim = info.action_dim;
    parts.push_back(std::move(player.record));
  }
  Episodes out = concatenate(parts, info.max_steps);
  out.source = info.name, out.env_id = info.name;
  return out;
}

}  // namespace pwdice
