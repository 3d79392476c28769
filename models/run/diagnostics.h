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

// How many transitions the weights are worth, (sum w)^2 / sum w^2, and the share of those from the expert's file.
struct WeightSummary {
  double effective = 0, expert_share = 0;
};
WeightSummary summarise(const std::vector<float>& w, const std::vector<uint8_t>& source);

// The two directions of largest variance of the rows, and each row's coordinates in them: (rows, 2).
std::vector<float> principal_plane(Mat<const float> rows);

}  // namespace pwdice
