// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <mujoco/mujoco.h>

#include "egl.h"
#include "mujoco_env.h"

namespace pwdice {

// Draws a simulation with MuJoCo's own renderer, seen by the model's camera `track`.
class MujocoRenderer {
 public:
  MujocoRenderer(const mjModel* model, int width, int height);
  ~MujocoRenderer();
  MujocoRenderer(const MujocoRenderer&) = delete;
  MujocoRenderer& operator=(const MujocoRenderer&) = delete;

  int width() const { return width_; }
  int height() const { return height_; }
  Image draw(const mjModel* model, mjData* data);

 private:
  int width_, height_;
  OffscreenGl gl_;
  mjvScene scene_;
  mjrContext context_;
  mjvCamera camera_;
  mjvOption option_;
};

}  // namespace pwdice
