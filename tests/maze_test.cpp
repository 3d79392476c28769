// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../datasets/maze.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "../datasets/random_numbers.h"
#include "../host/rng.h"
#include "../kernels/error.h"

namespace pwdice {
namespace {

constexpr float kHalfWidth = 0.125f;

// Whether the body overlaps a wall; touching is allowed.
bool inside_a_wall(const float* state) {
  const float slack = 1e-5f;
  for (const float dx : {-kHalfWidth + slack, kHalfWidth - slack}) {
    for (const float dy : {-kHalfWidth + slack, kHalfWidth - slack}) {
      const auto column = static_cast<int64_t>(std::floor(state[0] + dx));
      if (maze_layout().wall(column, static_cast<int64_t>(std::floor(state[1] + dy)))) return true;
    }
  }
  return false;
}

std::pair<int64_t, int64_t> cell_of(const float* state) {
  return {static_cast<int64_t>(std::floor(state[0])), static_cast<int64_t>(std::floor(state[1]))};
}

std::pair<int64_t, int64_t> marked(char mark) {
  const MazeLayout& maze = maze_layout();
  for (int64_t r = 0; r < maze.height(); ++r) {
    const size_t c = maze.rows[r].find(mark);
    if (c != std::string_view::npos) return {static_cast<int64_t>(c), r};
  }
  return {-1, -1};
}

TEST(Maze, LayoutIsClosedAndFitsOnAScreen) {
  const MazeLayout& maze = maze_layout();
  EXPECT_LE(maze.width(), 80);
  EXPECT_LE(maze.height(), 25);
  for (int64_t r = 0; r < maze.height(); ++r) {
    EXPECT_EQ(static_cast<int64_t>(maze.rows[r].size()), maze.width());
    EXPECT_TRUE(maze.wall(0, r) && maze.wall(maze.width() - 1, r));
  }
  for (int64_t c = 0; c < maze.width(); ++c) EXPECT_TRUE(maze.wall(c, 0) && maze.wall(c, maze.height() - 1));
  EXPECT_TRUE(maze.wall(-1, 3) && maze.wall(3, 1000));
  EXPECT_NE(marked('S').first, -1);
  EXPECT_NE(marked('G').first, -1);
}

TEST(Maze, NothingCrossesAWall) {
  const std::unique_ptr<Environment> maze = make_maze();
  RandomNumbers numbers(random_stream(5, "test"));
  float state[4], before[4], action[2];
  for (uint64_t seed = 0; seed < 20; ++seed) {
    maze->reset(seed, {state, 4});
    float push[2] = {1, 1};
    for (int step = 0; step < 2000; ++step) {
      // Long pushes at full strength reach every speed and corner.
      if (step % 7 == 0) push[0] = numbers.uniform() < 0.5 ? -1.f : 1.f;
      if (step % 5 == 0) push[1] = numbers.uniform() < 0.5 ? -1.f : 1.f;
      action[0] = push[0], action[1] = push[1];
      std::memcpy(before, state, sizeof state);
      maze->step({action, 2}, {state, 4});
      ASSERT_FALSE(inside_a_wall(state)) << state[0] << ", " << state[1];
      ASSERT_LE(std::abs(state[0] - before[0]), 0.41f);
      ASSERT_LE(std::abs(state[1] - before[1]), 0.41f);
      ASSERT_LE(std::abs(state[2]), 2.f);
    }
  }
}

TEST(Maze, IsADoubleIntegratorAwayFromWalls) {
  const std::unique_ptr<Environment> maze = make_maze();
  float state[4];
  const float gentle[2] = {0.25f, -0.125f};
  maze->reset(3, {state, 4});
  const float x = state[0], y = state[1];
  EXPECT_EQ(state[2], 0.f);
  const StepResult result = maze->step({gentle, 2}, {state, 4});
  EXPECT_NEAR(state[2], 0.2, 1e-6);
  EXPECT_NEAR(state[3], -0.1, 1e-6);
  EXPECT_NEAR(state[0], x + 0.04, 1e-6);
  EXPECT_NEAR(state[1], y - 0.02, 1e-6);
  EXPECT_EQ(result.reward, 0);
  EXPECT_FALSE(result.terminated);
}

TEST(Maze, AWallStopsTheBody) {
  const std::unique_ptr<Environment> maze = make_maze();
  float state[4];
  const float up[2] = {0, -1};
  maze->reset(0, {state, 4});
  for (int step = 0; step < 200; ++step) maze->step({up, 2}, {state, 4});
  EXPECT_EQ(state[3], 0.f);
  EXPECT_EQ(state[1] - kHalfWidth, std::floor(state[1] - kHalfWidth));  // against it, exactly
}

TEST(Maze, DataReplaysInTheEnvironment) {
  const Episodes data = maze_expert_data({});
  ASSERT_EQ(data.rows(), make_maze()->info().max_steps);
  for (int64_t i = 0; i + 1 < data.rows(); ++i) {
    EXPECT_EQ(std::memcmp(data.next_rows().row(i), data.observation_rows().row(i + 1), 16), 0);
  }
  for (int64_t i = 0; i < data.rows(); ++i) ASSERT_FALSE(inside_a_wall(data.observation_rows().row(i)));
}

// The normalised scale: the expert is 100.
TEST(Maze, ExpertReturnIsTheOneOfTheScale) {
  MazeDataOptions options;
  options.expert_episodes = 200;
  options.seed = 1234;
  const Episodes data = maze_expert_data(options);
  double mean = 0;
  for (const double r : episode_returns(data, find_episodes(data, 1000))) mean += r / 200;
  EXPECT_NEAR(make_maze()->info().normalised_score(mean), 100, 1.5);
}

TEST(Maze, RandomActionsScoreNothing) {
  RandomNumbers numbers(random_stream(9, "test"));
  const Evaluation e = evaluate(make_maze,
                                [&](Mat<const float>, Mat<float> actions) {
                                  for (int64_t i = 0; i < actions.size(); ++i) {
                                    actions.data[i] = static_cast<float>(numbers.uniform(-1, 1));
                                  }
                                },
                                {20, 0, 1});
  EXPECT_LT(e.score, 2);
}

// What makes the task one of stitching: nobody in the task-agnostic data goes from start to goal.
TEST(Maze, NoOfflineTrajectoryDoesTheTask) {
  for (const uint64_t seed : {0, 1, 2}) {
    MazeDataOptions options;
    options.seed = seed;
    const Episodes data = maze_offline_data(options);
    EXPECT_GE(data.rows(), options.transitions);
    std::set<std::pair<int64_t, int64_t>> visited;
    for (const EpisodeRange& episode : find_episodes(data, 1000)) {
      bool start = false, goal = false;
      for (int64_t i = episode.begin; i < episode.end; ++i) {
        const auto cell = cell_of(data.observation_rows().row(i));
        visited.insert(cell);
        start = start || cell == marked('S');
        goal = goal || cell == marked('G');
      }
      EXPECT_FALSE(start && goal) << "rows " << episode.begin << " to " << episode.end;
    }
    EXPECT_TRUE(visited.contains(marked('S')) && visited.contains(marked('G')));  // but all of it is there
  }
}

TEST(Maze, SameSeedSameData) {
  MazeDataOptions options;
  options.transitions = 2000;
  const Episodes a = maze_offline_data(options), b = maze_offline_data(options);
  EXPECT_EQ(a.observations, b.observations);
  EXPECT_EQ(a.actions, b.actions);
  options.seed = 1;
  EXPECT_NE(a.observations, maze_offline_data(options).observations);
  for (const float x : a.actions) ASSERT_LE(std::abs(x), 1.f);
  options.transitions = 0;
  EXPECT_THROW(maze_offline_data(options), Error);
}

// A policy that depends on the observation alone, to compare rollouts.
void swing(Mat<const float> observations, Mat<float> actions) {
  for (int64_t i = 0; i < actions.rows; ++i) {
    actions(i, 0) = std::sin(5 * observations(i, 1) + observations(i, 3));
    actions(i, 1) = std::cos(3 * observations(i, 0));
  }
}

TEST(Rollout, DoesNotDependOnThreads) {
  const Episodes one = rollout(make_maze, swing, {5, 7, 1}), three = rollout(make_maze, swing, {5, 7, 3});
  EXPECT_EQ(one.observations, three.observations);
  EXPECT_EQ(one.rewards, three.rewards);
  const Evaluation e = evaluate(make_maze, swing, {5, 7, 2});
  EXPECT_EQ(e.returns, episode_returns(one, find_episodes(one, 1000)));
  EXPECT_EQ(one.rows(), 5 * make_maze()->info().max_steps);
  check_episodes(one);
}

// Ends after k steps in episode k, and becomes unstable on demand.
class Counter final : public Environment {
 public:
  explicit Counter(bool unstable) : unstable_(unstable) {}
  const EnvironmentInfo& info() const override {
    static const EnvironmentInfo info{"Counter", 1, 1, 5, 0, 10};
    return info;
  }
  void reset(uint64_t seed, Vec<float> observation) override { left_ = seed, observation[0] = 0; }
  StepResult step(Vec<const float>, Vec<float> observation) override {
    observation[0] += unstable_ ? NAN : 1.f;
    return {1, --left_ == 0};
  }

 private:
  uint64_t left_ = 0;
  bool unstable_;
};

TEST(Rollout, EndsAtTerminalsAndTheTimeLimit) {
  const auto still = [](Mat<const float>, Mat<float> a) { a(0, 0) = 0; };
  const auto make = [] { return std::make_unique<Counter>(false); };
  const Evaluation e = evaluate(make, still, {7, 1, 2});
  EXPECT_EQ(e.lengths, (std::vector<int64_t>{1, 2, 3, 4, 5, 5, 5}));
  EXPECT_EQ(e.least, 1);
  EXPECT_EQ(e.greatest, 5);
  EXPECT_NEAR(e.score, 10 * 25.0 / 7, 1e-9);
  const Episodes data = rollout(make, still, {7, 1, 2});
  const auto episodes = find_episodes(data, 5);
  ASSERT_EQ(episodes.size(), 7u);
  EXPECT_TRUE(episodes[0].terminal && episodes[4].terminal && !episodes[5].terminal && episodes[5].timeout);
}

TEST(Rollout, AnUnstableSimulationIsAnError) {
  const auto make = [] { return std::make_unique<Counter>(true); };
  try {
    evaluate(make, [](Mat<const float>, Mat<float> a) { a(0, 0) = 0; }, {2, 1, 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::NotFinite);
    EXPECT_NE(std::string(error.what()).find("became unstable at step 0"), std::string::npos);
  }
}

}  // namespace
}  // namespace pwdice
