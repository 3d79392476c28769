// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// gymnasium's v4 locomotion tasks through MuJoCo's C API: hopper, halfcheetah, walker2d, ant (27 dimensions) and ant111
// (with contact forces). Observations, rewards, terminations and resets follow gymnasium; the noise of a reset comes
// from our own random streams, so episodes start from the same distribution but not from the same bits.
//
// MuJoCo itself is loaded when the first environment is made, so a program that never simulates does not need it.
//   library  PWDICE_MUJOCO_LIBRARY, or where the build found it, or the system's libmujoco.so
//   models   PWDICE_MUJOCO_MODELS (a directory of XML files), or the assets of the gymnasium the build found

#include <memory>
#include <span>
#include <string>

#include "environment.h"

namespace pwdice {

struct Image {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows from the top, 3 bytes a pixel
};

class MujocoEnvironment : public Environment {
 public:
  // For tests and replays: the exact state instead of a random one.
  virtual void set_state(std::span<const double> qpos, std::span<const double> qvel, Vec<float> observation) = 0;
  virtual double seconds_per_step() const = 0;
  // The present state, drawn without a window through libEGL; throws Unsupported, in one sentence, without it. From one
  // thread at a time.
  virtual Image draw(int width, int height) = 0;
};

// Throws Unsupported, in one sentence, without MuJoCo, without the model file or for an unknown name.
std::unique_ptr<MujocoEnvironment> make_mujoco(const std::string& name);
bool is_mujoco_task(const std::string& name) noexcept;

}  // namespace pwdice
