// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

namespace pwdice::tabular {
namespace {

constexpr double kPanelWidth = 220, kPanelHeight = 150, kGap = 34, kLeft = 64, kTop = 46, kLegendRow = 18;
constexpr std::array<const char*, 8> kColours{"#1b6ca8", "#c0392b", "#e59866", "#8e44ad",
                                              "#1e8449", "#82c09a", "#34495e", "#aab7b8"};

template <class... A>
void print(std::string& out, const char* format, A... args) {
  char line[512];
  std::snprintf(line, sizeof line, format, args...);
  out += line;
}

// The axes that the cells span.
struct Axes {
  std::set<double> etas;
  std::set<int> experts, agnostics;
  std::vector<Method> methods;
  double low = 0, high = 0;

  double x(int agnostic) const {
    if (agnostics.size() < 2) return kPanelWidth / 2;
    const double first = std::log10(*agnostics.begin()), last = std::log10(*agnostics.rbegin());
    return 8 + (kPanelWidth - 16) * (std::log10(agnostic) - first) / (last - first);
  }
  double y(double value) const { return kPanelHeight * (1 - (value - low) / (high - low)); }
};

double standard_error(const Moments& m, int count) { return m.deviation / std::sqrt(std::max(count - 1, 1)); }

Axes axes_of(std::span<const CellSummary> cells, ExpertKind expert, Metric metric) {
  Axes axes;
  for (const CellSummary& c : cells) {
    if (c.expert != expert || c.count == 0) continue;
    axes.etas.insert(c.cell.eta);
    axes.experts.insert(c.cell.expert_size);
    axes.agnostics.insert(c.cell.agnostic_size);
    if (std::find(axes.methods.begin(), axes.methods.end(), c.method) == axes.methods.end())
      axes.methods.push_back(c.method);
    const Moments& m = of(c, metric);
    axes.low = std::min(axes.low, m.mean - standard_error(m, c.count));
    axes.high = std::max(axes.high, m.mean + standard_error(m, c.count));
  }
  if (axes.high == axes.low) axes.high = axes.low + 1;
  axes.high += 0.05 * (axes.high - axes.low);
  return axes;
}

void draw_frame(std::string& out, const Axes& axes, bool left, bool bottom) {
  print(out, "<rect width=\"%g\" height=\"%g\" fill=\"#fafafa\" stroke=\"#bbb\"/>\n", kPanelWidth,
        kPanelHeight);
  const double raw = (axes.high - axes.low) / 4, unit = std::pow(10, std::floor(std::log10(raw)));
  const double tick = raw / unit > 5 ? 10 * unit : raw / unit > 2 ? 5 * unit : 2 * unit;
  for (double v = std::ceil(axes.low / tick) * tick; v <= axes.high; v += tick) {
    const double y = axes.y(v);
    print(out, "<line x1=\"0\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e3e3e3\"/>\n", kPanelWidth, y, y);
    if (left)
      print(out, "<text x=\"-6\" y=\"%.1f\" text-anchor=\"end\" dy=\"4\">%g</text>\n", y,
            std::abs(v) < 1e-12 ? 0.0 : v);
  }
  if (!bottom) return;
  for (const int n : axes.agnostics)
    print(out, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%d</text>\n", axes.x(n), kPanelHeight + 14,
          n);
}

using Points = std::vector<const CellSummary*>;

void draw_band(std::string& out, const Axes& axes, const Points& points, Metric metric, const char* colour) {
  std::string upper, lower;
  for (const CellSummary* c : points) {
    const Moments& m = of(*c, metric);
    const double x = axes.x(c->cell.agnostic_size), error = standard_error(m, c->count);
    char point[64];
    print(upper, "%.1f,%.1f ", x, axes.y(m.mean + error));
    std::snprintf(point, sizeof point, "%.1f,%.1f ", x, axes.y(m.mean - error));
    lower = point + lower;
  }
  out += "<polygon points=\"" + upper + lower + "\" fill=\"" + colour + "\" opacity=\"0.1\"/>\n";
}

void draw_line(std::string& out, const Axes& axes, const Points& points, Metric metric, const char* colour) {
  std::string line;
  for (const CellSummary* c : points)
    print(line, "%.1f,%.1f ", axes.x(c->cell.agnostic_size), axes.y(of(*c, metric).mean));
  out += "<polyline points=\"" + line + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"1.8\"/>\n";
  for (const CellSummary* c : points)
    print(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\" fill=\"%s\"><title>%.4f</title></circle>\n",
          axes.x(c->cell.agnostic_size), axes.y(of(*c, metric).mean), colour, of(*c, metric).mean);
}

void draw_panel(std::string& out, const Axes& axes, std::span<const CellSummary> cells, ExpertKind expert,
                Metric metric, double eta, int expert_size) {
  std::string lines;  // over the bands of all methods
  for (const Method method : axes.methods) {
    Points points;
    for (const CellSummary& c : cells)
      if (c.expert == expert && c.method == method && c.cell.eta == eta &&
          c.cell.expert_size == expert_size && c.count > 0)
        points.push_back(&c);
    if (points.empty()) continue;
    std::sort(points.begin(), points.end(),
              [](auto* a, auto* b) { return a->cell.agnostic_size < b->cell.agnostic_size; });
    draw_band(out, axes, points, metric, kColours[static_cast<size_t>(method)]);
    draw_line(lines, axes, points, metric, kColours[static_cast<size_t>(method)]);
  }
  out += lines;
}

}  // namespace

const char* name(Metric metric) {
  return metric == Metric::Regret ? "regret" : metric == Metric::TvS ? "tv_s" : "tv_ss";
}

const char* title(Metric metric) {
  return metric == Metric::Regret ? "regret (normalised occupancy of the goal)"
         : metric == Metric::TvS  ? "L1 distance of state occupancies (TV without the 1/2)"
                                  : "L1 distance of state-pair occupancies (TV without the 1/2)";
}

const Moments& of(const CellSummary& cell, Metric metric) {
  return metric == Metric::Regret ? cell.regret : metric == Metric::TvS ? cell.tv_s : cell.tv_ss;
}

std::string figure_svg(std::span<const CellSummary> cells, ExpertKind expert, Metric metric) {
  const Axes axes = axes_of(cells, expert, metric);
  const double width = kLeft + static_cast<double>(axes.experts.size()) * (kPanelWidth + kGap) + 10;
  const double panels = static_cast<double>(axes.etas.size()) * (kPanelHeight + kGap);
  const double height = kTop + panels + 24 + kLegendRow * static_cast<double>((axes.methods.size() + 1) / 2);
  std::string out;
  print(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" font-family=\"sans-serif\" "
        "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        width, height);
  print(out, "<text x=\"%g\" y=\"18\" font-size=\"14\">%s, %s expert</text>\n", kLeft, title(metric),
        name(expert));
  double top = kTop;
  for (const double eta : axes.etas) {
    double left = kLeft;
    for (const int size : axes.experts) {
      print(out, "<g transform=\"translate(%g,%g)\">\n", left, top);
      draw_frame(out, axes, left == kLeft, eta == *axes.etas.rbegin());
      print(out, "<text x=\"4\" y=\"-4\">eta %g, %d expert transitions</text>\n", eta, size);
      draw_panel(out, axes, cells, expert, metric, eta, size);
      out += "</g>\n";
      left += kPanelWidth + kGap;
    }
    top += kPanelHeight + kGap;
  }
  print(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">task-agnostic transitions</text>\n",
        (kLeft + width - 10 - kGap) / 2, top + 4);
  for (size_t k = 0; k < axes.methods.size(); ++k) {
    const double x = kLeft + static_cast<double>(k % 2) * 320,
                 y = top + 22 + kLegendRow * static_cast<double>(k / 2);
    const std::string label(description(axes.methods[k]));
    print(out, "<rect x=\"%g\" y=\"%g\" width=\"18\" height=\"4\" fill=\"%s\"/>", x, y - 6,
          kColours[static_cast<size_t>(axes.methods[k])]);
    print(out, "<text x=\"%g\" y=\"%g\">%s</text>\n", x + 24, y, label.c_str());
  }
  return out + "</svg>\n";
}

}  // namespace pwdice::tabular
