// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../../host/checkpoint.h"
#include "../../kernels/error.h"
#include "svg.h"

namespace pwdice {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{512} << 20;
constexpr const char* kExpert = "#c2410c";
constexpr const char* kData = "#64748b";
constexpr const char* kPolicy = "#1d4ed8";

// metrics.csv by phase and name.
using Curves = std::map<std::string, std::map<std::string, svg::Points>>;

Curves read_curves(const std::string& path) {
  Curves curves;
  std::istringstream in(read_file(path, kMaxBytes));
  std::string line;
  std::getline(in, line);  // the header
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string phase, step, seconds, name, value;
    if (!std::getline(fields, phase, ',') || !std::getline(fields, step, ',') || !std::getline(fields, seconds, ',') ||
        !std::getline(fields, name, ',') || !std::getline(fields, value)) {
      fail(ErrorCode::BadFile, "{}: a line that is not phase,step,seconds,name,value: {}", path, line);
    }
    try {
      curves[phase][name].emplace_back(std::stod(step), std::stod(value));
    } catch (const std::exception&) {
      fail(ErrorCode::BadFile, "{}: not a number in: {}", path, line);
    }
  }
  return curves;
}

svg::Points points(const json& array) {
  svg::Points out;
  for (const auto& p : array) out.emplace_back(p.at(0).get<double>(), p.at(1).get<double>());
  return out;
}

std::vector<svg::Points> all_ways(const json& array) {
  std::vector<svg::Points> out;
  for (const auto& way : array) out.push_back(points(way));
  return out;
}

std::string figure(const std::string& picture) { return "<figure>" + picture + "</figure>\n"; }

std::string curve_section(const Curves& curves) {
  std::string out = "<h2>Training</h2>\n<div class='row'>\n";
  for (const char* phase : {"contrastive", "discriminator", "dual"}) {
    const auto found = curves.find(phase);
    if (found == curves.end()) continue;
    for (const char* name : {"loss", "policy_loss", "objective"}) {
      const auto curve = found->second.find(name);
      if (curve == found->second.end()) continue;
      const std::string label = std::string(name) == "policy_loss" ? "policy" : std::string(name) == "objective" ? "dual, exact objective" : phase;
      out += figure(svg::line_chart({.title = label, .x_label = std::string("step (") + phase + ")", .y_label = "loss"},
                                    {{label, kPolicy, curve->second}}));
    }
  }
  return out + "</div>\n";
}

std::string evaluation_section(const Curves& curves) {
  const auto found = curves.find("evaluation");
  if (found == curves.end()) return "";
  const auto& e = found->second;
  std::string out = "<h2>Evaluation</h2>\n<div class='row'>\n";
  out += figure(svg::line_chart({.title = "normalised score", .x_label = "dual step", .y_label = "score (0 random, 100 expert)"},
                                {{"score", kPolicy, e.at("score")}}));
  out += figure(svg::line_chart({.title = "return", .x_label = "dual step", .y_label = "return over episodes"},
                                {{"least", kData, e.at("least")}, {"mean", kPolicy, e.at("return")}, {"greatest", kExpert, e.at("greatest")}}));
  return out + "</div>\n";
}

std::string weight_section(const json& w) {
  char text[200];
  std::snprintf(text, sizeof text,
                "<p>%.1f %% of the weight lies on transitions from the expert's file; effective sample size %.0f.</p>\n",
                100 * w.at("expert_share").get<double>(), w.at("effective").get<double>());
  return std::string("<h2>Weights of behaviour cloning</h2>\n") + text + "<div class='row'>\n" +
         figure(svg::histogram({.title = "weights", .x_label = "log10 w (largest = 0)", .y_label = "log10 (1 + count)"},
                               w.at("lowest").get<double>(), 0,
                               {{"task-agnostic", kData, w.at("agnostic").get<std::vector<double>>()},
                                {"from the expert's file", kExpert, w.at("expert").get<std::vector<double>>()}})) +
         "</div>\n";
}

std::string map_section(const json& map) {
  std::string out = "<h2>States and embeddings</h2>\n<p>Plane of the two largest variances (PCA); task-agnostic states are "
                    "darker the larger their weight.</p>\n<div class='row'>\n";
  std::vector<double> opacity;
  for (const auto& w : map.at("weights")) {  // visible even at zero
    const double log_w = w.get<double>() > 0 ? std::log10(w.get<double>()) : -6;
    opacity.push_back(0.15 + 0.85 * std::clamp(1 + log_w / 6, 0.0, 1.0));
  }
  for (const char* kind : {"states", "embeddings"}) {
    if (!map.contains(kind)) continue;
    out += figure(svg::scatter({.title = kind, .x_label = "first direction", .y_label = "second direction", .height = 400},
                               {{"data", kPolicy, points(map.at(kind).at("data")), opacity},
                                {"expert", kExpert, points(map.at(kind).at("expert")), {}}}));
  }
  return out + "</div>\n";
}

std::string maze_section(const json& m) {
  const auto rows = m.at("rows").get<std::vector<std::string>>();
  return "<h2>The maze</h2>\n<p>S start, G goal. The policy was rolled out from five starts.</p>\n<div class='row'>\n" +
         figure(svg::maze({.title = "ways", .x_label = "", .y_label = "", .width = 640, .height = 520}, rows,
                          {{"data", kData, 0.8, 0.35, all_ways(m.at("data"))},
                           {"expert", kExpert, 4, 0.8, all_ways(m.at("expert"))},
                           {"policy", kPolicy, 1.6, 0.9, all_ways(m.at("policy"))}})) +
         "</div>\n";
}

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1120px;margin:2em auto;padding:0 1em;color:#1e293b;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}figure{margin:0}.row{display:flex;flex-wrap:wrap;gap:1em}"
    "svg{max-width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:#475569}svg .title{font-weight:600;font-size:13px;fill:#1e293b}"
    ".grid{stroke:#e2e8f0;fill:none}.line{fill:none;stroke-width:1.6}.wall{fill:#334155}.free{fill:#f8fafc}.start{fill:#dbeafe}"
    ".goal{fill:#fed7aa}pre{background:#f8fafc;padding:1em;overflow:auto;font-size:12px}";

}  // namespace

std::string write_report(const std::string& run) {
  const std::string config = read_file(run + "/config.toml", kMaxBytes);
  const Curves curves = read_curves(run + "/metrics.csv");
  std::string body = curve_section(curves) + evaluation_section(curves);
  if (std::filesystem::exists(run + "/diagnostics.json")) {
    try {
      const json d = json::parse(read_file(run + "/diagnostics.json", kMaxBytes));
      if (d.contains("maze")) body = maze_section(d.at("maze")) + body;
      body += weight_section(d.at("weights")) + map_section(d.at("map"));
    } catch (const json::exception& error) {
      fail(ErrorCode::BadFile, "{}/diagnostics.json: {}", run, error.what());
    }
  } else {
    body = "<p>The run is not finished: curves so far.</p>\n" + body;
  }
  const std::string title = svg::escape("pwdice: " + std::filesystem::path(run).lexically_normal().string());
  const std::string path = run + "/report.html";
  write_file_atomically(path, "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>" + title + "</title><style>" +
                                  kStyle + "</style></head><body>\n<h1>" + title + "</h1>\n" + body +
                                  "<h2>Config</h2>\n<pre>" + svg::escape(config) + "</pre>\n</body></html>\n");
  return path;
}

}  // namespace pwdice
