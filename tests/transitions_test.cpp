// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../datasets/transitions.h"

#include <gtest/gtest.h>

#include <numeric>

#include "../kernels/error.h"

namespace pwdice {
namespace {

// State i is (i, -i), action i is i / 100. Rows 0-2 end in a terminal, 3-5 in a timeout, 6-7 are cut off.
// next_observations holds i + 1 within an episode and 100 + i at its end.
Episodes three_episodes(bool next, bool timeouts = true) {
  Episodes e;
  e.source = "hand-made";
  e.state_dim = 2, e.action_dim = 1;
  for (int i = 0; i < 8; ++i) {
    const float x = static_cast<float>(i);
    e.observations.insert(e.observations.end(), {x, -x});
    e.actions.push_back(x / 100);
    e.rewards.push_back(x);
    e.terminals.push_back(i == 2);
    if (timeouts) e.timeouts.push_back(i == 5);
    const float n = i == 2 || i == 5 || i == 7 ? 100 + x : x + 1;
    if (next) e.next_observations.insert(e.next_observations.end(), {n, -n});
  }
  return e;
}

struct Row {
  float state, next, action;
  int done, step;
  bool operator==(const Row&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Row& r) {
  return out << "{" << r.state << " -> " << r.next << ", a " << r.action << ", done " << r.done << ", step "
             << r.step << "}";
}

std::vector<Row> rows_of(const Transitions& t) {
  std::vector<Row> out;
  for (int64_t i = 0; i < t.size(); ++i) {
    EXPECT_GE(t.next[i], 0);
    EXPECT_LT(t.next[i], t.table_rows());
    out.push_back({t.state(i)[0], t.next_state(i)[0], t.actions[i], t.done[i], t.step[i]});
  }
  return out;
}

TEST(Episodes, EndAtTerminalTimeoutOrEndOfFile) {
  const auto episodes = find_episodes(three_episodes(true), 1000);
  ASSERT_EQ(episodes.size(), 3u);
  EXPECT_EQ(episodes[0].end, 3);
  EXPECT_TRUE(episodes[0].terminal && !episodes[0].timeout);
  EXPECT_TRUE(!episodes[1].terminal && episodes[1].timeout);
  EXPECT_TRUE(!episodes[2].terminal && !episodes[2].timeout);
}

TEST(Episodes, WithoutTimeoutsEndAfterTheStepLimit) {
  const auto episodes = find_episodes(three_episodes(true, false), 3);
  ASSERT_EQ(episodes.size(), 3u);
  EXPECT_EQ(episodes[1].begin, 3);
  EXPECT_EQ(episodes[1].end, 6);
  EXPECT_TRUE(episodes[1].timeout);
  EXPECT_FALSE(episodes[2].timeout);
  EXPECT_EQ(find_episodes(three_episodes(true, false), 1000).size(), 2u);
}

TEST(Episodes, SelectionMarksACutAsTimeout) {
  const Episodes data = three_episodes(true);
  const auto episodes = find_episodes(data, 1000);
  const Episodes some = select_episodes(data, {episodes[2], episodes[0]});
  EXPECT_EQ(some.rows(), 5);
  EXPECT_EQ(some.observations[0], 6);
  EXPECT_EQ(some.timeouts, (std::vector<uint8_t>{0, 1, 0, 0, 0}));
  EXPECT_EQ(some.terminals, (std::vector<uint8_t>{0, 0, 0, 0, 1}));
  EXPECT_EQ(episode_returns(some, find_episodes(some, 1000)), (std::vector<double>{13, 3}));
  const Episodes both = concatenate({some, three_episodes(false)}, 1000);
  EXPECT_EQ(both.rows(), 13);
  EXPECT_FALSE(both.has_next());
  EXPECT_TRUE(both.has_rewards());
}

TEST(Transitions, ReferenceRuleDropsTimeoutsAndTheLastRow) {
  for (const bool next : {false, true}) {
    const Transitions t =
        build_transitions(three_episodes(next), TransitionRule::Reference, AbsorbingRule::None, 1000);
    EXPECT_EQ(rows_of(t),
              (std::vector<Row>{{0, 1, 0.00f, 0, 0},
                                {1, 2, 0.01f, 0, 1},
                                {2, 3, 0.02f, 1, 2},  // s' is the next episode's first state: masked
                                {3, 4, 0.03f, 0, 0},
                                {4, 5, 0.04f, 0, 1},
                                {6, 7, 0.06f, 0, 0}}));
    EXPECT_EQ(t.table_rows(), 8);  // every observation once
  }
}

TEST(Transitions, ExactRuleUsesNextObservations) {
  const Transitions t =
      build_transitions(three_episodes(true), TransitionRule::Exact, AbsorbingRule::None, 1000);
  EXPECT_EQ(rows_of(t), (std::vector<Row>{{0, 1, 0.00f, 0, 0},
                                          {1, 2, 0.01f, 0, 1},
                                          {2, 102, 0.02f, 1, 2},
                                          {3, 4, 0.03f, 0, 0},
                                          {4, 5, 0.04f, 0, 1},
                                          {5, 105, 0.05f, 0, 2},
                                          {6, 7, 0.06f, 0, 0},
                                          {7, 107, 0.07f, 0, 1}}));
  EXPECT_EQ(t.table_rows(), 11);  // and the last state of each episode
  for (int64_t i = 0; i < t.size(); ++i) EXPECT_EQ(t.state(i)[0], -t.state(i)[1]);
}

TEST(Transitions, ExactRuleWithoutNextObservationsKeepsTerminalRows) {
  const Transitions t =
      build_transitions(three_episodes(false), TransitionRule::Exact, AbsorbingRule::None, 1000);
  EXPECT_EQ(rows_of(t), (std::vector<Row>{{0, 1, 0.00f, 0, 0},
                                          {1, 2, 0.01f, 0, 1},
                                          {2, 2, 0.02f, 1, 2},
                                          {3, 4, 0.03f, 0, 0},
                                          {4, 5, 0.04f, 0, 1},
                                          {6, 7, 0.06f, 0, 0}}));
}

TEST(Transitions, NextObservationThatDiffersFromTheFollowingRowIsKept) {
  Episodes data = three_episodes(true);
  data.next_observations[0] = 50, data.next_observations[1] = -50;
  const Transitions t = build_transitions(data, TransitionRule::Exact, AbsorbingRule::None, 1000);
  EXPECT_EQ(rows_of(t)[0], (Row{0, 50, 0.f, 0, 0}));
  EXPECT_EQ(rows_of(t)[1], (Row{1, 2, 0.01f, 0, 1}));
  EXPECT_EQ(t.table_rows(), 12);
}

TEST(Transitions, AbsorbingStateOfThePublishedCode) {
  const Transitions t =
      build_transitions(three_episodes(true), TransitionRule::Exact, AbsorbingRule::PwDice, 1000);
  ASSERT_EQ(t.state_dim, 3);
  ASSERT_EQ(t.size(), 10);
  const std::vector<Row> rows = rows_of(t);
  EXPECT_EQ(rows[2], (Row{2, 102, 0.02f, 0, 2}));
  EXPECT_EQ(rows[3], (Row{102, 0, 0.02f, 0, 3}));
  EXPECT_EQ(rows[4], (Row{0, 0, 0.02f, 1, 4}));
  EXPECT_EQ(rows[5], (Row{3, 4, 0.03f, 0, 0}));
  const std::vector<float> flags = {t.state(2)[2], t.next_state(2)[2], t.state(3)[2], t.next_state(3)[2],
                                    t.state(4)[2]};
  EXPECT_EQ(flags, (std::vector<float>{0, 0, 0, 1, 1}));
  EXPECT_EQ(t.next[4], 4);  // the absorbing state leads to itself
}

TEST(Transitions, AbsorbingStateOfSmodice) {
  const Transitions t =
      build_transitions(three_episodes(true), TransitionRule::Exact, AbsorbingRule::Smodice, 1000);
  ASSERT_EQ(t.size(), 9);
  EXPECT_EQ(rows_of(t)[2], (Row{2, 0, 0.02f, 0, 2}));
  EXPECT_EQ(t.next_state(2)[2], 1);
  EXPECT_EQ(rows_of(t)[3], (Row{0, 0, 0.02f, 1, 3}));
}

TEST(Transitions, AbsorbingStateWithUnknownNextState) {
  const Transitions t =
      build_transitions(three_episodes(false), TransitionRule::Exact, AbsorbingRule::PwDice, 1000);
  EXPECT_EQ(rows_of(t)[2], (Row{2, 0, 0.02f, 0, 2}));
  EXPECT_EQ(rows_of(t)[3], (Row{0, 0, 0.02f, 1, 3}));
}

TEST(Transitions, SeveralRecordingsShareOneTable) {
  const Episodes data = three_episodes(true);
  const auto episodes = find_episodes(data, 1000);
  TransitionBuilder builder(TransitionRule::Exact, AbsorbingRule::None);
  builder.add(data, {episodes[1]}, 0);
  builder.add(data, episodes, 7);
  const Transitions t = builder.take();
  EXPECT_EQ(t.size(), 11);
  EXPECT_EQ(std::accumulate(t.source.begin(), t.source.end(), 0), 8 * 7);
  EXPECT_EQ(rows_of(t)[2].next, 105);
  EXPECT_EQ(rows_of(t)[3].state, 0);
  Episodes wider = data;
  wider.state_dim = 1, wider.action_dim = 1;
  TransitionBuilder other(TransitionRule::Exact, AbsorbingRule::None);
  other.add(data, episodes, 0);
  EXPECT_THROW(other.add(wider, episodes, 1), Error);
}

TEST(Transitions, EmptyAndShortEpisodes) {
  Episodes data = three_episodes(false);
  for (uint8_t& t : data.timeouts) t = 1;  // eight episodes of one row
  data.terminals.assign(8, 0);
  EXPECT_EQ(build_transitions(data, TransitionRule::Reference, AbsorbingRule::None, 1000).size(), 0);
  EXPECT_EQ(build_transitions(data, TransitionRule::Exact, AbsorbingRule::None, 1000).size(), 0);
  EXPECT_EQ(build_transitions(three_episodes(true), TransitionRule::Exact, AbsorbingRule::None, 1).size(), 8);
}

}  // namespace
}  // namespace pwdice
