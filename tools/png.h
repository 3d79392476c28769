// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>
#include <vector>

#include "../datasets/mujoco_env.h"

namespace pwdice::tools {

// One PNG; with several pictures of one size an animated PNG, which every browser plays, `delay` seconds a
// picture.
std::string encode_png(const std::vector<Image>& pictures, double delay = 0);

// The pictures in rows of `columns`, as one.
Image tile(const std::vector<Image>& pictures, int columns);

}  // namespace pwdice::tools
