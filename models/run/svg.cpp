// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace pwdice::svg {
namespace {

constexpr int kLeft = 62, kRight = 14, kTop = 30, kBottom = 42;

std::string number(double v, const char* format = "%.4g") {
  char text[32];
  std::snprintf(text, sizeof text, format, v);
  return text;
}

std::string text_at(double x, double y, const std::string& text, const char* anchor, const char* extra = "") {
  return "<text x='" + number(x, "%.1f") + "' y='" + number(y, "%.1f") + "' text-anchor='" + anchor + "'" + extra + ">" +
         escape(text) + "</text>";
}

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double v) {
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  }
  void settle() {  // something to draw even when there is nothing, or one value
    if (!(low <= high)) low = 0, high = 1;
    if (high - low < 1e-12 * std::max(1.0, std::abs(high))) low -= 0.5, high += 0.5;
  }
};

// A plot area in pixels with its scales.
struct Frame {
  const ChartOptions& options;
  Extent x, y;
  double px(double v) const { return kLeft + (v - x.low) / (x.high - x.low) * (options.width - kLeft - kRight); }
  double py(double v) const { return options.height - kBottom - (v - y.low) / (y.high - y.low) * (options.height - kTop - kBottom); }
};

// Round steps: 1, 2 or 5 times a power of ten, about five of them.
std::vector<double> ticks(const Extent& extent) {
  const double raw = (extent.high - extent.low) / 5, power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= raw) step = factor * power;
  }
  std::vector<double> out;
  for (double v = std::ceil(extent.low / step) * step; v <= extent.high + 1e-9 * step; v += step) {
    out.push_back(std::abs(v) < 1e-9 * step ? 0 : v);
  }
  return out;
}

std::string open(const ChartOptions& o) {
  return "<svg viewBox='0 0 " + std::to_string(o.width) + " " + std::to_string(o.height) + "' width='" + std::to_string(o.width) +
         "' height='" + std::to_string(o.height) + "' xmlns='http://www.w3.org/2000/svg' role='img'><title>" + escape(o.title) +
         "</title>" + text_at(kLeft, 18, o.title, "start", " class='title'");
}

std::string axes(const Frame& f) {
  const ChartOptions& o = f.options;
  std::string out;
  for (double v : ticks(f.x)) {
    const std::string x = number(f.px(v), "%.1f");
    out += "<path class='grid' d='M" + x + " " + std::to_string(kTop) + "V" + std::to_string(o.height - kBottom) + "'/>";
    out += text_at(f.px(v), o.height - kBottom + 15, number(v), "middle");
  }
  for (double v : ticks(f.y)) {
    out += "<path class='grid' d='M" + std::to_string(kLeft) + " " + number(f.py(v), "%.1f") + "H" + std::to_string(o.width - kRight) + "'/>";
    out += text_at(kLeft - 6, f.py(v) + 4, number(v), "end");
  }
  out += text_at((kLeft + o.width - kRight) / 2.0, o.height - 8, o.x_label, "middle");
  const double middle = (kTop + o.height - kBottom) / 2.0;
  out += "<text x='14' y='" + number(middle, "%.1f") + "' text-anchor='middle' transform='rotate(-90 14 " + number(middle, "%.1f") +
         ")'>" + escape(o.y_label) + "</text>";
  return out;
}

template <class Items>
std::string legend(const ChartOptions& o, const Items& items) {
  std::string out;
  double x = o.width - kRight;
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    if (item->name.empty()) continue;
    x -= 6.6 * static_cast<double>(item->name.size()) + 4;
    out += text_at(x, 18, item->name, "start");
    out += "<rect x='" + number(x - 14, "%.1f") + "' y='9' width='10' height='10' rx='2' fill='" + item->colour + "'/>";
    x -= 24;
  }
  return out;
}

std::string path_of(const Points& points, const auto& to_x, const auto& to_y) {
  std::string d;
  bool pen_down = false;
  for (const auto& [x, y] : points) {
    if (!std::isfinite(x) || !std::isfinite(y)) {
      pen_down = false;
      continue;
    }
    d += (pen_down ? "L" : "M") + number(to_x(x), "%.1f") + " " + number(to_y(y), "%.1f");
    pen_down = true;
  }
  return d;
}

}  // namespace

std::string escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string line_chart(const ChartOptions& options, const std::vector<Series>& series) {
  Frame f{options, {}, {}};
  for (const auto& s : series) {
    for (const auto& [x, y] : s.points) f.x.add(x), f.y.add(y);
  }
  f.x.settle(), f.y.settle();
  std::string out = open(options) + axes(f);
  for (const auto& s : series) {
    out += "<path class='line' stroke='" + s.colour + "' d='" +
           path_of(s.points, [&](double v) { return f.px(v); }, [&](double v) { return f.py(v); }) + "'/>";
  }
  return out + (series.size() > 1 ? legend(options, series) : "") + "</svg>";
}

std::string histogram(const ChartOptions& options, double low, double high, const std::vector<Bars>& bars) {
  Frame f{options, {low, high}, {0, 1}};
  for (const auto& b : bars) {
    for (double c : b.counts) f.y.add(std::log10(1 + c));
  }
  std::string out = open(options) + axes(f);
  const double kinds = static_cast<double>(bars.size());
  for (size_t k = 0; k < bars.size(); ++k) {
    const double width = (high - low) / static_cast<double>(bars[k].counts.size());
    for (size_t i = 0; i < bars[k].counts.size(); ++i) {
      if (bars[k].counts[i] <= 0) continue;
      const double x0 = low + width * (static_cast<double>(i) + static_cast<double>(k) / kinds), y = std::log10(1 + bars[k].counts[i]);
      out += "<rect x='" + number(f.px(x0), "%.1f") + "' y='" + number(f.py(y), "%.1f") + "' width='" +
             number(f.px(x0 + width / kinds) - f.px(x0), "%.1f") + "' height='" + number(f.py(0) - f.py(y), "%.1f") + "' fill='" +
             bars[k].colour + "'/>";
    }
  }
  return out + legend(options, bars) + "</svg>";
}

std::string scatter(const ChartOptions& options, const std::vector<Dots>& dots) {
  Frame f{options, {}, {}};
  for (const auto& d : dots) {
    for (const auto& [x, y] : d.points) f.x.add(x), f.y.add(y);
  }
  f.x.settle(), f.y.settle();
  std::string out = open(options) + axes(f);
  for (const auto& d : dots) {
    out += "<g fill='" + d.colour + "'>";
    for (size_t i = 0; i < d.points.size(); ++i) {
      out += "<circle r='2' cx='" + number(f.px(d.points[i].first), "%.1f") + "' cy='" + number(f.py(d.points[i].second), "%.1f") + "'";
      out += d.opacity.empty() ? "/>" : " opacity='" + number(d.opacity[i], "%.2f") + "'/>";
    }
    out += "</g>";
  }
  return out + legend(options, dots) + "</svg>";
}

std::string maze(const ChartOptions& options, const std::vector<std::string>& rows, const std::vector<Ways>& ways) {
  const double columns = rows.empty() ? 1 : static_cast<double>(rows[0].size()), lines = std::max<double>(1, static_cast<double>(rows.size()));
  const double unit = std::min((options.width - 20) / columns, (options.height - kTop - 10) / lines);
  const auto x = [&](double v) { return 10 + unit * v; };
  const auto y = [&](double v) { return kTop + unit * v; };
  std::string out = open(options);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < rows[r].size(); ++c) {
      const char cell = rows[r][c];
      const char* kind = cell == '#' ? "wall" : cell == 'G' ? "goal" : cell == 'S' ? "start" : "free";
      out += "<rect class='" + std::string(kind) + "' x='" + number(x(static_cast<double>(c)), "%.1f") + "' y='" +
             number(y(static_cast<double>(r)), "%.1f") + "' width='" + number(unit, "%.1f") + "' height='" + number(unit, "%.1f") + "'/>";
    }
  }
  for (const auto& kind : ways) {
    for (const auto& way : kind.ways) {
      out += "<path fill='none' stroke='" + kind.colour + "' stroke-width='" + number(kind.width) + "' opacity='" +
             number(kind.opacity) + "' d='" + path_of(way, x, y) + "'/>";
    }
  }
  return out + legend(options, ways) + "</svg>";
}

}  // namespace pwdice::svg
