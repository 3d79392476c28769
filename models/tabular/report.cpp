// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "report.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "../../kernels/error.h"
#include "figure.h"

namespace pwdice::tabular {
namespace {

constexpr Metric kMetrics[] = {Metric::Regret, Metric::TvS, Metric::TvSs};

std::string number(double value, const char* unknown) {
  if (!std::isfinite(value)) return unknown;
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}
std::string field(double value) { return number(value, ""); }
std::string json(double value) { return number(value, "null"); }

std::string json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

// A field of free text: quoted, quotes doubled.
std::string csv_text(std::string_view text) {
  if (text.empty()) return "";
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string cell_fields(const CellKey& cell) {
  return std::to_string(cell.expert_size) + "," + std::to_string(cell.agnostic_size) + "," + field(cell.eta);
}

std::string cell_json(const CellSummary& c) {
  std::string out = "{\"expert_size\": " + std::to_string(c.cell.expert_size) +
                    ", \"agnostic_size\": " + std::to_string(c.cell.agnostic_size) +
                    ", \"eta\": " + json(c.cell.eta) + ", \"expert\": " + json(name(c.expert)) +
                    ", \"method\": " + json(name(c.method)) + ", \"count\": " + std::to_string(c.count) +
                    ", \"failures\": " + std::to_string(c.failures);
  for (const Metric metric : kMetrics) {
    const Moments& m = of(c, metric);
    out += std::string(", \"") + name(metric) + "\": {\"mean\": " + json(m.mean) +
           ", \"std\": " + json(m.deviation) + "}";
  }
  if (c.expert == ExpertKind::Deterministic)
    if (const auto published = published_regret(c.cell, c.method))
      out += ", \"published_regret\": {\"mean\": " + json(published->mean) +
             ", \"std\": " + json(published->deviation) + "}";
  return out + "}";
}

std::string score_json(const ZScores& z) {
  return "{\"method\": " + json(name(z.method)) + ", \"metric\": " + json(z.metric) +
         ", \"reference\": " + json(z.reference) + ", \"cells\": " + std::to_string(z.cells) +
         ", \"within_3\": " + std::to_string(z.within) + ", \"mean_z\": " + json(z.mean) +
         ", \"largest_abs_z\": " + json(z.largest) +
         ", \"largest_difference\": " + json(z.largest_difference) + "}";
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) fail(ErrorCode::BadFile, "tabular report: cannot write {}", path.string());
}

std::string page(const std::vector<std::string>& figures, std::span<const ZScores> scores) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Tabular experiment</title>\n"
      "<style>body{font-family:sans-serif;max-width:1150px;margin:2em auto}table{border-collapse:collapse}"
      "td,th{padding:3px 10px;border:1px solid "
      "#ccc;text-align:right}td:first-child{text-align:left}</style></head><body>\n"
      "<h1>Tabular experiment</h1>\n<p>Regret is in normalised occupancy of the goal state. The TV curves "
      "are plain L1 "
      "norms as published, without the factor 1/2. \"LobsDICE as run\" is the closed form behind the "
      "published "
      "LobsDICE numbers and does not use the expert; \"LobsDICE (as intended)\" is our reading of the "
      "method. Bands are "
      "one standard error.</p>\n";
  if (!scores.empty()) {
    out +=
        "<table><tr><th>method</th><th>metric</th><th>compared with</th><th>cells</th><th>|z| &le; "
        "3</th><th>mean z</th>"
        "<th>largest |z|</th></tr>\n";
    for (const ZScores& z : scores) {
      char row[256];
      std::snprintf(row, sizeof row, "<td>%d</td><td>%d</td><td>%+.2f</td><td>%.2f</td></tr>\n", z.cells,
                    z.within, z.mean, z.largest);
      out += "<tr><td>" + std::string(description(z.method)) + "</td><td>" + z.metric + "</td><td>" +
             z.reference + "</td>" + row;
    }
    out += "</table>\n";
  }
  for (const std::string& figure : figures) out += figure;
  return out + "</body></html>\n";
}

}  // namespace

std::string records_csv(std::span<const Record> records) {
  std::string out =
      "expert_size,agnostic_size,eta,index,expert,method,regret,tv_s,tv_ss,objective,converged,seconds,"
      "error\n";
  for (const Record& r : records)
    out += cell_fields(r.cell) + "," + std::to_string(r.index) + "," + name(r.expert) + "," +
           std::string(name(r.method)) + "," + field(r.metrics.regret) + "," + field(r.metrics.tv_s) + "," +
           field(r.metrics.tv_ss) + "," + field(r.objective) + "," + (r.converged ? "1" : "0") + "," +
           field(r.seconds) + "," + csv_text(r.error) + "\n";
  return out;
}

std::string summary_csv(std::span<const CellSummary> cells) {
  std::string out =
      "expert_size,agnostic_size,eta,expert,method,count,failures,regret_mean,regret_std,tv_s_mean,tv_s_std,"
      "tv_ss_mean,tv_ss_std\n";
  for (const CellSummary& c : cells) {
    out += cell_fields(c.cell) + "," + name(c.expert) + "," + std::string(name(c.method)) + "," +
           std::to_string(c.count) + "," + std::to_string(c.failures);
    for (const Metric metric : kMetrics)
      out += "," + field(of(c, metric).mean) + "," + field(of(c, metric).deviation);
    out += "\n";
  }
  return out;
}

std::string summary_json(const GridOptions& options, const GridResult& result,
                         std::span<const CellSummary> cells, std::span<const ZScores> scores) {
  std::string out = "{\n\"instances_per_cell\": " + std::to_string(options.instances) +
                    ",\n\"instances\": " + json(options.replay_published ? "published, replayed" : "own") +
                    ",\n\"seed\": " + std::to_string(options.seed) +
                    ",\n\"seconds\": " + json(result.seconds) + ",\n\"methods\": {";
  for (size_t k = 0; k < options.methods.size(); ++k)
    out += (k ? ", " : "") + json(name(options.methods[k])) + ": " + json(description(options.methods[k]));
  out += "},\n\"cells\": [\n";
  for (size_t k = 0; k < cells.size(); ++k) out += (k ? ",\n" : "") + cell_json(cells[k]);
  out += "\n],\n\"z_scores\": [\n";
  for (size_t k = 0; k < scores.size(); ++k) out += (k ? ",\n" : "") + score_json(scores[k]);
  return out + "\n]\n}\n";
}

void write_report(const std::string& directory, const GridOptions& options, const GridResult& result,
                  std::span<const ZScores> scores) {
  const std::filesystem::path root(directory);
  std::error_code failed;
  std::filesystem::create_directories(root, failed);
  if (failed) fail(ErrorCode::BadFile, "tabular report: cannot create {}: {}", directory, failed.message());
  const auto cells = summarise(result.records);
  write_file(root / "records.csv", records_csv(result.records));
  write_file(root / "summary.csv", summary_csv(cells));
  write_file(root / "summary.json", summary_json(options, result, cells, scores));
  std::vector<std::string> figures;
  for (const ExpertKind expert : options.experts)
    for (const Metric metric : kMetrics) {
      figures.push_back(figure_svg(cells, expert, metric));
      write_file(root / (std::string(name(metric)) + "_" + name(expert) + ".svg"), figures.back());
    }
  write_file(root / "index.html", page(figures, scores));
}

}  // namespace pwdice::tabular
