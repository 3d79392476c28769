// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "expert.h"

#include <cmath>
#include <numeric>
#include <string>

#include "../kernels/error.h"

namespace pwdice {
namespace {

struct Named {
  ExpertWeighting weighting;
  const char* name;
};
constexpr Named kNames[] = {
    {ExpertWeighting::Uniform, "uniform"},          {ExpertWeighting::Exp, "exp"},
    {ExpertWeighting::ExpTail, "exp_tail"},         {ExpertWeighting::ExpCode, "exp_code"},
    {ExpertWeighting::UniformGoal, "uniform_goal"}, {ExpertWeighting::ExpGoal, "exp_goal"},
};

void normalise(std::vector<double>& w) {
  const double sum = std::accumulate(w.begin(), w.end(), 0.0);
  for (double& x : w) x /= sum;
}

std::vector<double> discounted(const std::vector<EpisodeRange>& episodes, double gamma, bool tail) {
  std::vector<double> w;
  for (const EpisodeRange& episode : episodes) {
    for (int64_t j = 0; j < episode.length(); ++j) {
      const bool rest = tail && j + 1 == episode.length();
      w.push_back((rest ? 1.0 : 1.0 - gamma) * std::pow(gamma, static_cast<double>(j)));
    }
  }
  return w;
}

std::vector<double> discounted_as_published(const std::vector<EpisodeRange>& episodes, double gamma) {
  std::vector<double> w;
  int64_t j = 0;
  for (const EpisodeRange& episode : episodes) {
    for (int64_t k = 0; k < episode.length(); ++k) {
      w.push_back((1.0 - gamma) * std::pow(gamma, static_cast<double>(j)));
      j = k == 0 ? 0 : j + 1;
    }
  }
  w.back() /= 1.0 - gamma;
  return w;
}

// Half of w, which must sum to 1, and half shared by the last states.
void move_half_to_goals(std::vector<double>& w, const std::vector<EpisodeRange>& episodes) {
  for (double& x : w) x *= 0.5;
  int64_t end = 0;
  for (const EpisodeRange& episode : episodes) {
    end += episode.length();
    w[end - 1] += 0.5 / static_cast<double>(episodes.size());
  }
}

}  // namespace

ExpertWeighting expert_weighting(std::string_view name) {
  std::string known;
  for (const Named& entry : kNames) {
    if (name == entry.name) return entry.weighting;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  fail(ErrorCode::InvalidArgument, "expert weighting '{}' is not one of {}", name, known);
}

const char* name(ExpertWeighting weighting) noexcept {
  for (const Named& entry : kNames) {
    if (entry.weighting == weighting) return entry.name;
  }
  return "unknown";
}

std::vector<float> expert_weights(const std::vector<EpisodeRange>& episodes, ExpertWeighting weighting,
                                  double gamma) {
  PWDICE_CHECK(gamma >= 0 && gamma < 1, "expert weights: gamma is {}, expected a value in [0, 1)", gamma);
  int64_t m = 0;
  for (const EpisodeRange& episode : episodes) {
    PWDICE_CHECK(episode.length() > 0, "expert weights: an episode of {} states", episode.length());
    m += episode.length();
  }
  PWDICE_CHECK(m > 0, "expert weights: no expert states");
  std::vector<double> w;
  switch (weighting) {
    case ExpertWeighting::Uniform:
    case ExpertWeighting::UniformGoal:
      w.assign(m, 1.0);
      break;
    case ExpertWeighting::Exp:
      w = discounted(episodes, gamma, false);
      break;
    case ExpertWeighting::ExpTail:
    case ExpertWeighting::ExpGoal:
      w = discounted(episodes, gamma, true);
      break;
    case ExpertWeighting::ExpCode:
      w = discounted_as_published(episodes, gamma);
      break;
  }
  normalise(w);
  if (weighting == ExpertWeighting::UniformGoal || weighting == ExpertWeighting::ExpGoal) {
    move_half_to_goals(w, episodes);
  }
  return {w.begin(), w.end()};
}

Expert build_expert(const Episodes& data, const std::vector<EpisodeRange>& episodes,
                    AbsorbingRule absorbing) {
  const bool flag = absorbing != AbsorbingRule::None;
  Expert out;
  out.state_dim = data.state_dim + (flag ? 1 : 0);
  const auto append = [&](const float* state, float absorbed) {
    for (int64_t k = 0; k < data.state_dim; ++k) out.states.push_back(state == nullptr ? 0.f : state[k]);
    if (flag) out.states.push_back(absorbed);
  };
  for (const EpisodeRange& episode : episodes) {
    EpisodeRange range{out.size(), 0, episode.terminal, episode.timeout};
    for (int64_t i = episode.begin; i < episode.end; ++i) append(data.observation_rows().row(i), 0.f);
    if (flag && episode.terminal) {
      if (absorbing == AbsorbingRule::PwDice && data.has_next())
        append(data.next_rows().row(episode.end - 1), 0.f);
      append(nullptr, 1.f);
    }
    range.end = out.size();
    out.episodes.push_back(range);
  }
  return out;
}

}  // namespace pwdice
