// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>

#include "../datasets/collect.h"

namespace pwdice::tools {

// Plays the episode of that seed once more and draws it into a file, by the ending of its name:
//   .png   a MuJoCo task: ten moments of the episode in two rows      .apng  its first 8 seconds as a film,
//   an animated PNG .svg   the maze: its walls and the way that was taken
// Throws InvalidArgument for another ending, Unsupported without a renderer.
void record_episode(const std::string& environment, const Controller& controller, uint64_t seed,
                    const std::string& path);
void check_recordable(const std::string& environment, const std::string& path);  // before the work is done

}  // namespace pwdice::tools
