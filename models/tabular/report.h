// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <span>
#include <string>

#include "grid.h"
#include "published.h"

namespace pwdice::tabular {

// One line per record / per cell; numbers with 17 digits, an unknown value as an empty field.
std::string records_csv(std::span<const Record> records);
std::string summary_csv(std::span<const CellSummary> cells);

// The summary, the z-scores and the labels of the methods as one JSON object.
std::string summary_json(const GridOptions& options, const GridResult& result,
                         std::span<const CellSummary> cells, std::span<const ZScores> scores);

// Writes records.csv, summary.csv, summary.json, one SVG per metric and expert, and index.html that shows
// them all. Creates the directory; throws BadFile naming the path if something cannot be written.
void write_report(const std::string& directory, const GridOptions& options, const GridResult& result,
                  std::span<const ZScores> scores);

}  // namespace pwdice::tabular
