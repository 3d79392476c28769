// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// The MuJoCo tasks of a build without MuJoCo's headers.
#include "../kernels/error.h"
#include "mujoco_env.h"

namespace pwdice {

bool is_mujoco_task(const std::string& name) noexcept {
  for (const char* task : {"hopper", "halfcheetah", "walker2d", "ant", "ant111"}) {
    if (name == task) return true;
  }
  return false;
}

std::unique_ptr<MujocoEnvironment> make_mujoco(const std::string& name) {
  fail(ErrorCode::Unsupported, "environment {}: this build has no MuJoCo; run tools/setup.sh --mujoco and configure again", name);
}

}  // namespace pwdice
