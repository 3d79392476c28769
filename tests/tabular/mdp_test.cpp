// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "../../models/tabular/metrics.h"
#include "golden_case.h"

namespace pwdice::tabular {
namespace {

TEST(Mdp, TransitionsFollowTheProtocol) {
  LegacyRandom random(5);
  const RandomMdp r = make_random_mdp({.eta = 0.1}, random);
  for (int row = 0; row < r.mdp.transitions.n_rows(); ++row) {
    const auto entries = r.mdp.transitions.entries(row);
    ASSERT_EQ(entries.size(), 4u);
    double sum = 0, largest = 0;
    for (const auto& entry : entries)
      sum += entry.probability, largest = std::max(largest, entry.probability);
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_GE(largest, 0.9);  // 1 - eta on one of them
  }
  EXPECT_EQ(r.mdp.p0[0], 1);
  EXPECT_NE(r.mdp.goal, 0);
}

TEST(Mdp, GoalHasTheSmallestValueAtTheStart) {
  LegacyRandom random(6);
  const RandomMdp r = make_random_mdp({.eta = 1.0}, random);
  const double chosen = value_iteration(r.mdp.transitions, r.mdp.gamma, r.mdp.goal).v[0];
  for (int goal = 1; goal < r.mdp.n_states(); ++goal)
    EXPECT_GE(value_iteration(r.mdp.transitions, r.mdp.gamma, goal).v[0], chosen);
}

TEST(Mdp, DeterministicExpertIsOptimal) {
  LegacyRandom random(8);
  const RandomMdp r = make_random_mdp({.eta = 1.0}, random);
  const auto values = value_iteration(r.mdp.transitions, r.mdp.gamma, r.mdp.goal);
  const auto d = state_marginal(occupancy(r.mdp.transitions, r.mdp.p0, r.mdp.gamma, r.experts.deterministic),
                                r.mdp.n_actions());
  // d(goal) / (1 - gamma) is the discounted return.
  EXPECT_NEAR(d[static_cast<size_t>(r.mdp.goal)] / (1 - r.mdp.gamma), values.v[0], 1e-6);
}

// Both ways to compute an occupancy: the factorisation below 256 states, sweeps above.
TEST(Mdp, OccupancySatisfiesTheFlowAtEverySize) {
  for (const int n : {20, 250, 300}) {
    LegacyRandom random(9);
    const RandomMdp r = make_random_mdp({.n_states = n, .eta = 1.0, .goal_candidates = 2}, random);
    const auto d_sa = occupancy(r.mdp.transitions, r.mdp.p0, r.mdp.gamma, r.experts.softmax);
    EXPECT_NEAR(std::accumulate(d_sa.begin(), d_sa.end(), 0.0), 1, 1e-12);
    std::vector<double> inflow(static_cast<size_t>(n));
    r.mdp.transitions.push_forward(d_sa, inflow);
    const auto d = state_marginal(d_sa, r.mdp.n_actions());
    for (size_t s = 0; s < d.size(); ++s)
      EXPECT_NEAR(d[s], (1 - r.mdp.gamma) * r.mdp.p0[s] + r.mdp.gamma * inflow[s], 1e-14);
  }
}

TEST(Mdp, UniformRowsEqualTheirDenseForm) {
  TransitionModel implicit(3, 1), dense(3, 1);
  implicit.append_row({{1, 1.0}});
  implicit.append_uniform_row();
  implicit.append_row({{0, 0.5}, {2, 0.5}});
  dense =
      TransitionModel::from_dense(3, 1, std::vector<double>{0, 1, 0, 1. / 3, 1. / 3, 1. / 3, 0.5, 0, 0.5});
  const std::vector<double> p0{1, 0, 0};
  const Policy only(3, 1.0);
  EXPECT_LE(largest_difference(occupancy(implicit, p0, 0.9, only), occupancy(dense, p0, 0.9, only)), 1e-15);
}

TEST(Mdp, MetricsOfTheExpertItselfAreZero) {
  LegacyRandom random(10);
  const RandomMdp r = make_random_mdp({.eta = 0.5}, random);
  const Metrics same = evaluate(r.mdp, r.experts.softmax, r.experts.softmax);
  EXPECT_EQ(same.regret, 0);
  EXPECT_EQ(same.tv_s, 0);
  EXPECT_EQ(same.tv_ss, 0);
  const Metrics other = evaluate(r.mdp, r.experts.deterministic, r.experts.softmax);
  EXPECT_GT(other.regret, 0);
  EXPECT_GE(other.tv_ss, other.tv_s);
  EXPECT_LE(other.tv_ss, 2);
}

TEST(Mdp, PolicyReadOut) {
  const std::vector<double> d{0.3, 0.1, 1e-14, 0, -0.1, 0.2};
  const Policy clipped = policy_from_occupancy(d, 2, Negatives::Clip);
  EXPECT_DOUBLE_EQ(clipped[0], 0.75);
  EXPECT_DOUBLE_EQ(clipped[2], 0.5);  // below 1e-12: uniform
  EXPECT_DOUBLE_EQ(clipped[4], 0.0);
  EXPECT_DOUBLE_EQ(policy_from_occupancy(d, 2, Negatives::Keep)[4], -1.0);
}

}  // namespace
}  // namespace pwdice::tabular
