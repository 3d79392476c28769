// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "mixture.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../kernels/error.h"

namespace pwdice {
namespace {

int64_t first_expert(const std::vector<EpisodeRange>& episodes, const Episodes& data,
                     const MixtureSpec& spec) {
  if (spec.expert_episode >= 0) {
    PWDICE_CHECK(spec.expert_episode < static_cast<int64_t>(episodes.size()),
                 "mixture: expert trajectory {} of {}, which has {}", spec.expert_episode, data.source,
                 episodes.size());
    return spec.expert_episode;
  }
  for (size_t k = 0; k < episodes.size(); ++k) {
    if (episodes[k].timeout && episodes[k].length() == spec.max_episode_steps) return static_cast<int64_t>(k);
  }
  fail(ErrorCode::InvalidArgument,
       "mixture: no trajectory of {} has the full length of {} steps; choose one (data.expert_trajectory, --expert-episode) "
       "or another length (data.max_episode_steps, --max-episode-steps)",
       data.source, spec.max_episode_steps);
}

// The policy ends in a tanh, and its likelihood has no value beyond it.
void check_actions(const Episodes& data) {
  if (data.action_dim < 1) fail(ErrorCode::BadFile, "{} has no actions, which I needs", data.source);
  for (size_t i = 0; i < data.actions.size(); ++i) {
    if (std::abs(data.actions[i]) > 1) {
      fail(ErrorCode::InvalidArgument, "{}: action {} of row {} is {}, expected -1 to 1; scale the actions of the file", data.source,
           static_cast<int64_t>(i) % data.action_dim, static_cast<int64_t>(i) / data.action_dim, data.actions[i]);
    }
  }
}

}  // namespace

ExpertSplit split_expert(const Episodes& expert, const MixtureSpec& spec) {
  const std::vector<EpisodeRange> episodes = find_episodes(expert, spec.max_episode_steps);
  const int64_t count = static_cast<int64_t>(episodes.size());
  PWDICE_CHECK(count > 0, "mixture: {} has no episodes", expert.source);
  const bool all = spec.expert_episodes < 0;
  const int64_t begin = all && spec.expert_episode < 0 ? 0 : first_expert(episodes, expert, spec);
  const int64_t end = all ? count : begin + spec.expert_episodes;
  PWDICE_CHECK(begin < end && end <= count, "mixture: expert trajectories {} to {} of {}, which has {}",
               begin, end - 1, expert.source, count);
  ExpertSplit out;
  out.expert.assign(episodes.begin() + begin, episodes.begin() + end);
  const bool acts = expert.action_dim > 0;
  PWDICE_CHECK(acts || spec.offline_expert <= 0, "mixture: {} has no actions, so that {} of its trajectories cannot go into I",
               expert.source, spec.offline_expert);
  const int64_t available = acts ? count - (spec.exclude_expert ? end - begin : 0) : 0;
  const int64_t wanted = spec.offline_expert < 0 ? available : spec.offline_expert;
  PWDICE_CHECK(wanted <= available, "mixture: {} expert trajectories asked for in I, {} has {} to give",
               wanted, expert.source, available);
  for (int64_t k = 0; static_cast<int64_t>(out.offline.size()) < wanted; ++k) {
    if (!spec.exclude_expert || k < begin || k >= end) out.offline.push_back(episodes[k]);
  }
  return out;
}

Mixture build_mixture(const Episodes& expert, std::vector<Episodes> offline, const MixtureSpec& spec) {
  PWDICE_CHECK(offline.size() < 255, "mixture: {} recordings, expected fewer than 255", offline.size());
  const ExpertSplit split = split_expert(expert, spec);
  Mixture out;
  out.expert = build_expert(expert, split.expert, spec.absorbing);
  out.expert.weight = expert_weights(out.expert.episodes, spec.weighting, spec.gamma);

  TransitionBuilder builder(spec.rule, spec.absorbing);
  if (!split.offline.empty()) {
    check_actions(expert);
    builder.add(expert, split.offline, 0);
  }
  for (size_t k = 0; k < offline.size(); ++k) {
    check_actions(offline[k]);
    builder.add(offline[k], find_episodes(offline[k], spec.max_episode_steps), static_cast<uint8_t>(k + 1));
    offline[k] = {};
  }
  out.offline = builder.take();
  PWDICE_CHECK(out.offline.size() > 0, "mixture: no transitions in I");

  const Mat<float> states{out.offline.states.data(), out.offline.table_rows(), out.offline.state_dim};
  const Mat<float> shown{out.expert.states.data(), out.expert.size(), out.expert.state_dim};
  out.initial = spec.initial;
  StateMap& map = out.state_map;
  map.absorbing = spec.absorbing != AbsorbingRule::None;
  if (spec.distortion > 0) {
    map.distortion = Distortion::random(expert.state_dim, spec.distortion, spec.distortion_seed);
  }
  map.distortion.apply(states), map.distortion.apply(shown);
  map.normalizer = Normalizer::fit(out.offline, spec.normalizer);
  map.normalizer.apply(states), map.normalizer.apply(shown);
  return out;
}

}  // namespace pwdice
