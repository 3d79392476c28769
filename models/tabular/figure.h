// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <span>
#include <string>

#include "grid.h"

namespace pwdice::tabular {

enum class Metric { Regret, TvS, TvSs };
const char* name(Metric metric);   // "regret", "tv_s", "tv_ss"
const char* title(Metric metric);  // with its unit
const Moments& of(const CellSummary& cell, Metric metric);

// The paper's figure as a self-contained SVG: a row of panels per eta, a column per expert size, agnostic
// size on a logarithmic axis, one line per method with a band of one standard error.
std::string figure_svg(std::span<const CellSummary> cells, ExpertKind expert, Metric metric);

}  // namespace pwdice::tabular
