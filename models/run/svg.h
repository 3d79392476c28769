// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pwdice::svg {

using Points = std::vector<std::pair<double, double>>;

struct Series {
  std::string name, colour;
  Points points;
};

struct ChartOptions {
  std::string title, x_label, y_label;
  int width = 520, height = 300;
};

// Lines over a common grid; points that are not finite leave a gap.
std::string line_chart(const ChartOptions& options, const std::vector<Series>& series);

// Bars of several kinds side by side over the same bins, on a logarithmic scale of counts.
struct Bars {
  std::string name, colour;
  std::vector<double> counts;
};
std::string histogram(const ChartOptions& options, double low, double high, const std::vector<Bars>& bars);

// Dots; the later series is drawn on top. `opacity` may be empty or have one value per point.
struct Dots {
  std::string name, colour;
  Points points;
  std::vector<double> opacity;
};
std::string scatter(const ChartOptions& options, const std::vector<Dots>& dots);

// Walls and ways seen from above; y grows down, as in the layout.
struct Ways {
  std::string name, colour;
  double width, opacity;
  std::vector<Points> ways;
};
std::string maze(const ChartOptions& options, const std::vector<std::string>& rows, const std::vector<Ways>& ways);

std::string escape(const std::string& text);  // for HTML and SVG

}  // namespace pwdice::svg
