// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <span>
#include <string>
#include <vector>

#include "grid.h"

namespace pwdice::tabular {

// Published regret of a method in a cell: deterministic expert, estimated model, mean and population
// deviation over ten instances, to four digits. None for methods and cells that were not published.
std::optional<Moments> published_regret(const CellKey& cell, Method method);

// How far our cell means are from reference means of the same cells, in standard errors of the difference:
//   z = (ours - reference) / sqrt(dev_ours^2/(n_ours - 1) + dev_reference^2/(n_reference - 1))
struct ZScores {
  Method method;
  std::string metric;             // "regret", "tv_s", "tv_ss"
  std::string reference;          // what is compared with: "published" or "replayed"
  int cells = 0, within = 0;      // within: |z| <= 3
  double mean = 0, largest = 0;   // mean z; largest |z|
  double largest_difference = 0;  // of cell means, absolute
};

double z_score(const Moments& ours, int n_ours, const Moments& reference, int n_reference);

// Regret against the published table, deterministic expert.
std::vector<ZScores> z_against_published(std::span<const CellSummary> cells);

// All three metrics against cells computed here on the published instances (the table has no TV columns).
std::vector<ZScores> z_against_replay(std::span<const CellSummary> cells,
                                      std::span<const CellSummary> replayed);

}  // namespace pwdice::tabular
