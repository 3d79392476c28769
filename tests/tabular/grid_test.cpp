// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../../kernels/error.h"
#include "../../models/tabular/report.h"

namespace pwdice::tabular {
namespace {

GridOptions tiny() {
  GridOptions options;
  options.expert_sizes = {10};
  options.agnostic_sizes = {10, 100};
  options.etas = {0.1};
  options.instances = 2;
  return options;
}

TEST(Grid, RunsEveryMethodOnEveryInstance) {
  int last = 0;
  const auto result = run_grid(tiny(), [&](int done, int total) {
    EXPECT_EQ(done, ++last);
    EXPECT_EQ(total, 4);
  });
  EXPECT_EQ(last, 4);
  ASSERT_EQ(result.records.size(), 2u * 2 * 2 * all_methods().size());
  for (const Record& r : result.records) {
    EXPECT_EQ(r.error, "");
    EXPECT_TRUE(std::isfinite(r.metrics.regret));
    EXPECT_LE(std::abs(r.metrics.regret), 1);
    EXPECT_LE(r.metrics.tv_ss, 2 + 1e-12);
    EXPECT_LE(r.metrics.tv_s, r.metrics.tv_ss + 1e-12);
  }
  for (const CellSummary& c : summarise(result.records)) EXPECT_EQ(c.count, 2);
}

TEST(Grid, DoesNotDependOnThreads) {
  GridOptions options = tiny();
  options.threads = 1;
  const auto one = run_grid(options);
  options.threads = 3;
  const auto three = run_grid(options);
  ASSERT_EQ(one.records.size(), three.records.size());
  for (size_t k = 0; k < one.records.size(); ++k) {
    EXPECT_EQ(one.records[k].metrics.regret, three.records[k].metrics.regret);
    EXPECT_EQ(one.records[k].metrics.tv_ss, three.records[k].metrics.tv_ss);
    EXPECT_EQ(one.records[k].method, three.records[k].method);
  }
  options.seed = 2;
  EXPECT_NE(one.records[0].metrics.tv_ss, run_grid(options).records[0].metrics.tv_ss);
}

// The paper's ordering, where the agnostic data covers the model. LobsDICE is not required to be bad.
TEST(Grid, OrderingAtLargeAgnosticSizes) {
  GridOptions options;
  options.agnostic_sizes = {1000, 10000};
  options.experts = {ExpertKind::Deterministic};
  options.methods = {Method::Lp, Method::Reg, Method::SmodiceKl, Method::SmodiceChi2};
  const auto cells = summarise(run_grid(options).records);
  std::vector<double> mean(all_methods().size());
  for (const CellSummary& c : cells) mean[static_cast<size_t>(c.method)] += c.regret.mean / 24;
  const auto of = [&](Method method) { return mean[static_cast<size_t>(method)]; };
  EXPECT_LT(std::abs(of(Method::Lp) - of(Method::Reg)), 0.003);
  EXPECT_LT(std::max(of(Method::Lp), of(Method::Reg)), of(Method::SmodiceKl));
  EXPECT_LT(of(Method::SmodiceKl), of(Method::SmodiceChi2));
  for (const ZScores& z : z_against_published(cells)) {
    EXPECT_EQ(z.cells, 24);
    EXPECT_GE(z.within, 22) << name(z.method);
  }
}

TEST(Grid, ZScores) {
  const Moments a{1.0, 0.3}, b{0.4, 0.3};
  EXPECT_NEAR(z_score(a, 10, b, 10), 0.6 / std::sqrt(2 * 0.09 / 9), 1e-12);
  EXPECT_EQ(z_score({1, 0}, 10, {1, 0}, 10), 0);
  EXPECT_TRUE(std::isinf(z_score({1, 0}, 10, {2, 0}, 10)));
  const auto published = published_regret({10000, 10, 0.1}, Method::Reg);
  ASSERT_TRUE(published.has_value());
  EXPECT_EQ(published->mean, 0.0960);
  EXPECT_EQ(published->deviation, 0.0782);
  EXPECT_FALSE(published_regret({10, 10, 0.5}, Method::Reg).has_value());
  EXPECT_FALSE(published_regret({10, 10, 0.1}, Method::Lobsdice).has_value());
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Grid, WritesReport) {
  const auto directory = std::filesystem::path(testing::TempDir()) / "pwdice_tabular_report";
  std::filesystem::remove_all(directory);
  const GridOptions options = tiny();
  const auto result = run_grid(options);
  const auto cells = summarise(result.records);
  write_report(directory.string(), options, result, z_against_published(cells));

  const auto summary = nlohmann::json::parse(read(directory / "summary.json"));
  EXPECT_EQ(summary.at("cells").size(), cells.size());
  EXPECT_EQ(summary.at("cells")[0].at("regret").at("mean").get<double>(), cells[0].regret.mean);
  EXPECT_EQ(summary.at("z_scores").size(), 5u);
  std::istringstream lines(read(directory / "records.csv"));
  size_t count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  EXPECT_EQ(count, result.records.size() + 1);
  for (const char* figure : {"regret_deterministic.svg", "tv_s_softmax.svg", "tv_ss_deterministic.svg"}) {
    const std::string svg = read(directory / figure);
    EXPECT_EQ(svg.rfind("<svg", 0), 0u);
    EXPECT_NE(svg.find("<polyline"), std::string::npos);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
  }
  const std::string page = read(directory / "index.html");
  EXPECT_NE(page.find("does not use the expert"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);  // self-contained
  std::filesystem::remove_all(directory);
}

TEST(Grid, ReportToAnImpossiblePlaceIsOneError) {
  const GridOptions options = tiny();
  try {
    write_report("/dev/null/report", options, {}, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadFile);
    EXPECT_NE(std::string(error.what()).find("/dev/null/report"), std::string::npos);
  }
}

}  // namespace
}  // namespace pwdice::tabular
