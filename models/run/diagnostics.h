// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>

#include "../../datasets/environment.h"
#include "../config.h"
#include "../pwdice.h"

namespace pwdice {

// What `pwdice report` draws besides the curves, as JSON: a histogram of the weights by source, a plane map (PCA)
// of states and embeddings, and for the maze its walls and the ways of expert, data and policy.
std::string diagnostics_json(Context& ctx, const Config& config, Trainer& trainer, const EnvironmentFactory& environment);

// The two directions of largest variance of the rows, and each row's coordinates in them: (rows, 2).
std::vector<float> principal_plane(Mat<const float> rows);

}  // namespace pwdice
