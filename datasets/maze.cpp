// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "maze.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "../host/rng.h"
#include "../kernels/error.h"
#include "random_numbers.h"

namespace pwdice {
namespace {

constexpr double kDt = 0.2, kMaxAcceleration = 4, kMaxSpeed = 2;
constexpr double kHalfWidth = 0.125;  // of the body; exact in binary: touching a wall is not entering it
constexpr double kJitter = 0.2;  // of a start position around the centre of its cell
constexpr int64_t kSteps = 125;
constexpr double kExpertReturn = 75.6;  // mean over 1000 episodes of the expert, see maze_test.cpp

// Controller.
constexpr double kWalkSpeed = 1.6, kVelocityGain = 0.8, kPositionGain = 3, kReach = 0.4, kPush = 0.9;
// Task-agnostic data.
constexpr double kExpertNoise = 0.1;
constexpr int64_t kMaxWalk = 8, kWalkSteps = 60, kHoldSteps = 8, kRandomSteps = 30;

struct Cell {
  int64_t column = 0, row = 0;
  double x() const { return static_cast<double>(column) + 0.5; }
  double y() const { return static_cast<double>(row) + 0.5; }
};
constexpr std::array<Cell, 4> kNeighbours = {Cell{1, 0}, Cell{-1, 0}, Cell{0, 1}, Cell{0, -1}};

Cell find(char mark) {
  const MazeLayout& maze = maze_layout();
  for (int64_t r = 0; r < maze.height(); ++r) {
    const size_t c = maze.rows[r].find(mark);
    if (c != std::string_view::npos) return {static_cast<int64_t>(c), r};
  }
  fail(ErrorCode::Internal, "maze: the layout has no '{}'", std::string(1, mark));
}

struct Body {
  double x = 0, y = 0, vx = 0, vy = 0;

  void observe(Vec<float> observation) const {
    observation[0] = static_cast<float>(x), observation[1] = static_cast<float>(y);
    observation[2] = static_cast<float>(vx), observation[3] = static_cast<float>(vy);
  }
  void step(double ax, double ay) {
    vx = std::clamp(vx + kDt * kMaxAcceleration * std::clamp(ax, -1.0, 1.0), -kMaxSpeed, kMaxSpeed);
    vy = std::clamp(vy + kDt * kMaxAcceleration * std::clamp(ay, -1.0, 1.0), -kMaxSpeed, kMaxSpeed);
    move(x, y, vx, [](int64_t along, int64_t across) { return maze_layout().wall(along, across); });
    move(y, x, vy, [](int64_t along, int64_t across) { return maze_layout().wall(across, along); });
  }

 private:
  // Along one axis; `across` is the other coordinate. The cells that the leading edge would enter must be
  // free.
  template <class Wall>
  static void move(double& along, double across, double& speed, Wall&& wall) {
    const double target = along + kDt * speed;
    const double edge = target + (speed > 0 ? kHalfWidth : -kHalfWidth);
    const int64_t entered = static_cast<int64_t>(speed > 0 ? std::ceil(edge) - 1 : std::floor(edge));
    const int64_t from = static_cast<int64_t>(std::floor(across - kHalfWidth));
    const int64_t to = static_cast<int64_t>(std::ceil(across + kHalfWidth)) - 1;
    bool hit = false;
    for (int64_t k = from; k <= to; ++k) hit = hit || wall(entered, k);
    if (!hit) {
      along = target;
      return;
    }
    along =
        speed > 0 ? static_cast<double>(entered) - kHalfWidth : static_cast<double>(entered + 1) + kHalfWidth;
    speed = 0;
  }
};

double reward_of(const Body& body) {
  static const Cell goal = find('G');
  return std::max(std::abs(body.x - goal.x()), std::abs(body.y - goal.y())) < 0.5 ? 1 : 0;
}

Body place(Cell cell, RandomNumbers& numbers) {
  return {cell.x() + numbers.uniform(-kJitter, kJitter), cell.y() + numbers.uniform(-kJitter, kJitter), 0, 0};
}

class Maze final : public Environment {
 public:
  const EnvironmentInfo& info() const override {
    static const EnvironmentInfo info{"PointMaze", 4, 2, kSteps, 0, kExpertReturn};
    return info;
  }
  void reset(uint64_t seed, Vec<float> observation) override {
    RandomNumbers numbers(random_stream(seed, "maze/reset"));
    body_ = place(find('S'), numbers);
    body_.observe(observation);
  }
  StepResult step(Vec<const float> action, Vec<float> observation) override {
    body_.step(static_cast<double>(action[0]), static_cast<double>(action[1]));
    body_.observe(observation);
    return {reward_of(body_), false};
  }

 private:
  Body body_;
};

// Number of cells from everywhere to `goal`; -1 for walls.
std::vector<int64_t> distances_to(Cell goal) {
  const MazeLayout& maze = maze_layout();
  std::vector<int64_t> distance(maze.width() * maze.height(), -1);
  const auto at = [&](Cell c) -> int64_t& { return distance[c.row * maze.width() + c.column]; };
  std::deque<Cell> queue = {goal};
  at(goal) = 0;
  while (!queue.empty()) {
    const Cell cell = queue.front();
    queue.pop_front();
    for (const Cell& n : kNeighbours) {
      const Cell next{cell.column + n.column, cell.row + n.row};
      if (maze.wall(next.column, next.row) || at(next) >= 0) continue;
      at(next) = at(cell) + 1;
      queue.push_back(next);
    }
  }
  return distance;
}

// Follows the centres of the cells on a shortest path and comes to rest on the last one.
class Walker {
 public:
  Walker(Cell start, Cell goal) {
    const int64_t width = maze_layout().width();
    const std::vector<int64_t> distance = distances_to(goal);
    path_ = {start};
    for (int64_t left = distance[start.row * width + start.column]; left > 0; --left) {
      for (const Cell& n : kNeighbours) {
        const Cell next{path_.back().column + n.column, path_.back().row + n.row};
        if (distance[next.row * width + next.column] != left - 1) continue;
        path_.push_back(next);
        break;
      }
    }
  }

  std::array<double, 2> act(const Body& body, double noise, RandomNumbers& numbers) {
    while (at_ + 1 < path_.size() && apart(body) < kReach) ++at_;
    const double dx = path_[at_].x() - body.x, dy = path_[at_].y() - body.y;
    const double far = std::max(std::hypot(dx, dy), 1e-9);
    const double speed = at_ + 1 < path_.size() ? kWalkSpeed : std::min(kWalkSpeed, kPositionGain * far);
    const auto push = [&](double wanted, double actual) {
      const double a = std::clamp(kVelocityGain * (wanted - actual), -kPush, kPush);
      return std::clamp(a + noise * numbers.normal(), -1.0, 1.0);
    };
    const double ax = push(speed * dx / far, body.vx);
    return {ax, push(speed * dy / far, body.vy)};
  }
  bool arrived(const Body& body) const { return at_ + 1 == path_.size() && apart(body) < kReach; }

 private:
  double apart(const Body& body) const {
    return std::hypot(path_[at_].x() - body.x, path_[at_].y() - body.y);
  }

  std::vector<Cell> path_;
  size_t at_ = 0;
};

// One step into the recording. Actions are rounded to float before they act, so that a replay gives the same.
void record(Episodes& out, Body& body, const std::array<double, 2>& action) {
  std::array<float, 4> state;
  const std::array<float, 2> rounded = {static_cast<float>(action[0]), static_cast<float>(action[1])};
  body.observe({state.data(), 4});
  out.observations.insert(out.observations.end(), state.begin(), state.end());
  out.actions.insert(out.actions.end(), rounded.begin(), rounded.end());
  body.step(static_cast<double>(rounded[0]), static_cast<double>(rounded[1]));
  body.observe({state.data(), 4});
  out.next_observations.insert(out.next_observations.end(), state.begin(), state.end());
  out.rewards.push_back(static_cast<float>(reward_of(body)));
  out.terminals.push_back(0);
  out.timeouts.push_back(0);
}

Episodes empty_recording(const char* source) {
  Episodes out;
  out.source = source, out.env_id = "PointMaze";
  out.state_dim = 4, out.action_dim = 2;
  return out;
}

void record_walk(Episodes& out, const std::vector<Cell>& free, double noise, RandomNumbers& numbers) {
  const Cell start = free[numbers.below(static_cast<int64_t>(free.size()))];
  const std::vector<int64_t> distance = distances_to(start);
  std::vector<Cell> goals;
  for (const Cell& cell : free) {
    const int64_t d = distance[cell.row * maze_layout().width() + cell.column];
    if (d >= 1 && d <= kMaxWalk) goals.push_back(cell);
  }
  Walker walker(start, goals[numbers.below(static_cast<int64_t>(goals.size()))]);
  Body body = place(start, numbers);
  int64_t held = 0;
  for (int64_t step = 0; step < kWalkSteps && held < kHoldSteps; ++step) {
    record(out, body, walker.act(body, noise, numbers));
    held += walker.arrived(body) ? 1 : 0;
  }
  out.timeouts.back() = 1;
}

void record_random(Episodes& out, const std::vector<Cell>& free, RandomNumbers& numbers) {
  Body body = place(free[numbers.below(static_cast<int64_t>(free.size()))], numbers);
  for (int64_t step = 0; step < kRandomSteps; ++step) {
    const double ax = numbers.uniform(-1, 1);
    record(out, body, {ax, numbers.uniform(-1, 1)});
  }
  out.timeouts.back() = 1;
}

}  // namespace

bool MazeLayout::wall(int64_t column, int64_t row) const {
  if (column < 0 || row < 0 || column >= width() || row >= height()) return true;
  return rows[row][column] == '#';
}

const MazeLayout& maze_layout() {
  static const MazeLayout layout{{
      "###########",
      "#S..#.....#",
      "#.#.#.###.#",
      "#.#...#...#",
      "#.###.#.#.#",
      "#.....#..G#",
      "###########",
  }};
  return layout;
}

std::unique_ptr<Environment> make_maze() { return std::make_unique<Maze>(); }

Episodes maze_offline_data(const MazeDataOptions& options) {
  PWDICE_CHECK(options.transitions > 0, "maze: {} transitions", options.transitions);
  PWDICE_CHECK(options.random_share >= 0 && options.random_share <= 1, "maze: a random share of {}",
               options.random_share);
  std::vector<Cell> free;
  for (int64_t r = 0; r < maze_layout().height(); ++r) {
    for (int64_t c = 0; c < maze_layout().width(); ++c) {
      if (!maze_layout().wall(c, r)) free.push_back({c, r});
    }
  }
  RandomNumbers numbers(random_stream(options.seed, "maze/offline"));
  Episodes out = empty_recording("maze offline");
  int64_t random_rows = 0;
  while (out.rows() < options.transitions) {
    const int64_t before = out.rows();
    if (static_cast<double>(random_rows) < options.random_share * static_cast<double>(before + 1)) {
      record_random(out, free, numbers);
      random_rows += out.rows() - before;
    } else {
      record_walk(out, free, options.action_noise, numbers);
    }
  }
  return out;
}

Episodes maze_expert_data(const MazeDataOptions& options) {
  PWDICE_CHECK(options.expert_episodes > 0, "maze: {} expert episodes", options.expert_episodes);
  RandomNumbers numbers(random_stream(options.seed, "maze/expert"));
  Episodes out = empty_recording("maze expert");
  for (int64_t k = 0; k < options.expert_episodes; ++k) {
    Walker walker(find('S'), find('G'));
    Body body = place(find('S'), numbers);
    for (int64_t step = 0; step < kSteps; ++step) {
      record(out, body, walker.act(body, kExpertNoise, numbers));
    }
    out.timeouts.back() = 1;
  }
  return out;
}

}  // namespace pwdice
