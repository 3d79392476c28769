// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// A point mass in a maze: the data set and the task that need no download and no simulator.
//
//   v <- clamp(v + dt a_max action, |v_k| <= v_max)      p <- p + dt v, stopped by walls      dt = 0.2
//
// Observation (x, y, vx, vy), two accelerations in [-1, 1]. A cell is 1 x 1; the body is a square, moved
// along x and then along y; a wall stops it and takes that component of the velocity. It moves less than a
// cell a step, so it cannot pass through a wall.
//
// Task    from rest near the start cell, reach the goal cell and stay; reward 1 for each step that ends in
//         it, so a return is the time spent there. No terminals, 125 steps.
// Expert  a waypoint controller on the shortest path from start to goal, small noise on its actions.
// Offline walks of the same controller between random cells, at most half the task's way apart, and random
// actions.
//         The task needs a longer way, so no offline trajectory does it: it has to be stitched together. At
//         each junction the walks disagree, so imitating all of them does not do it either.

#include <array>
#include <memory>
#include <string_view>

#include "environment.h"

namespace pwdice {

// '#' wall, '.' free, 'S' start, 'G' goal. Cell (column c, row r) covers [c, c + 1) x [r, r + 1); y grows
// down.
struct MazeLayout {
  std::vector<std::string_view> rows;

  int64_t width() const { return static_cast<int64_t>(rows[0].size()); }
  int64_t height() const { return static_cast<int64_t>(rows.size()); }
  bool wall(int64_t column, int64_t row) const;
};
const MazeLayout& maze_layout();

std::unique_ptr<Environment> make_maze();

struct MazeDataOptions {
  uint64_t seed = 0;
  int64_t transitions = 40000;  // offline rows, at least
  double random_share = 0.25;   // of them from random actions
  int64_t expert_episodes = 1;
  double action_noise = 0.3;  // deviation, of the walks; wide enough that they also meet the walls
};
Episodes maze_offline_data(const MazeDataOptions& options);
Episodes maze_expert_data(const MazeDataOptions& options);

}  // namespace pwdice
