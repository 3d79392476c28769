// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>

namespace pwdice {

// RUN/report.html: one self-contained file with the curves of every phase, the evaluation, the weights, maps of
// states and embeddings and, for the maze, the ways of expert, data and policy. Returns its path. A run that is not
// finished gets the curves it has so far.
std::string write_report(const std::string& run_directory);

}  // namespace pwdice
