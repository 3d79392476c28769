// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "cmd_tabular.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "../kernels/error.h"
#include "../models/tabular/report.h"
#include "../models/tabular/scaling.h"

namespace pwdice {
namespace {

using namespace tabular;

struct Arguments {
  GridOptions grid;
  std::vector<std::string> experts{"det", "soft"}, methods;
  std::vector<int> sizes;
  std::string out;
  int states = 0;
  bool json = false, quiet = false, tv_reference = true;
};

// One renewed line on a terminal; elsewhere a plain line for every tenth of the work.
class ProgressLine {
 public:
  ProgressLine(std::string label, bool quiet)
      : label_(std::move(label)), quiet_(quiet), terminal_(isatty(2) != 0) {}
  void operator()(int done, int total) {
    if (quiet_) return;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (terminal_) {
      std::fprintf(stderr, "\r%s: %d of %d instances, %.1f s%s", label_.c_str(), done, total, seconds,
                   done == total ? "\n" : "");
    } else if (done * 10 / total != (done - 1) * 10 / total) {
      std::fprintf(stderr, "%s: %d of %d instances, %.1f s\n", label_.c_str(), done, total, seconds);
    }
  }

 private:
  std::string label_;
  bool quiet_, terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void resolve(Arguments& arguments) {
  GridOptions& grid = arguments.grid;
  if (!arguments.sizes.empty()) grid.expert_sizes = grid.agnostic_sizes = arguments.sizes;
  grid.experts.clear();
  for (const std::string& text : arguments.experts) {
    PWDICE_CHECK(text == "det" || text == "soft", "tabular: unknown expert '{}', expected det or soft", text);
    grid.experts.push_back(text == "det" ? ExpertKind::Deterministic : ExpertKind::Softmax);
  }
  if (arguments.methods.empty()) return;
  grid.methods.clear();
  std::string known;
  for (const Method method : all_methods()) known += (known.empty() ? "" : ", ") + std::string(name(method));
  for (const std::string& text : arguments.methods) {
    const auto method = method_from_name(text);
    PWDICE_CHECK(method.has_value(), "tabular: unknown method '{}', expected one of {}", text, known);
    grid.methods.push_back(*method);
  }
}

// The published table has no TV columns, so those are compared with the published instances solved here.
std::vector<ZScores> compare(const Arguments& arguments, std::span<const CellSummary> cells) {
  auto scores = z_against_published(cells);
  const auto& grid = arguments.grid;
  const bool deterministic =
      std::find(grid.experts.begin(), grid.experts.end(), ExpertKind::Deterministic) != grid.experts.end();
  if (grid.replay_published || !arguments.tv_reference || !deterministic) return scores;
  GridOptions reference = grid;
  reference.replay_published = true;
  reference.instances = kPublishedInstances;
  reference.experts = {ExpertKind::Deterministic};
  reference.methods.clear();
  for (const Method method : {Method::Lp, Method::Reg, Method::SmodiceKl})
    if (std::find(grid.methods.begin(), grid.methods.end(), method) != grid.methods.end())
      reference.methods.push_back(method);
  if (reference.methods.empty()) return scores;
  const auto replayed = run_grid(reference, ProgressLine("published instances", arguments.quiet));
  for (auto& score : z_against_replay(cells, summarise(replayed.records)))
    if (score.metric != "regret") scores.push_back(std::move(score));
  return scores;
}

void print_means(const Arguments& arguments, std::span<const CellSummary> cells) {
  for (const ExpertKind expert : arguments.grid.experts) {
    std::printf("\nMean over the cells, %s expert\n%-40s %10s %10s %10s %9s\n", name(expert), "method",
                "regret", "tv_s", "tv_ss", "failures");
    for (const Method method : arguments.grid.methods) {
      double regret = 0, tv_s = 0, tv_ss = 0;
      int n = 0, failures = 0;
      for (const CellSummary& c : cells) {
        if (c.expert != expert || c.method != method) continue;
        failures += c.failures;
        if (c.count == 0) continue;
        regret += c.regret.mean, tv_s += c.tv_s.mean, tv_ss += c.tv_ss.mean, ++n;
      }
      std::printf("%-40s %10.5f %10.5f %10.5f %9d\n", std::string(description(method)).c_str(), regret / n,
                  tv_s / n, tv_ss / n, failures);
    }
  }
}

void print_scores(const Arguments& arguments, std::span<const ZScores> scores) {
  if (scores.empty()) {
    std::printf(
        "\nNone of these cells and methods was published with a deterministic expert: no z-scores.\n");
    return;
  }
  std::printf("\nAgainst the published table, deterministic expert%s\n",
              arguments.grid.replay_published ? " (the published instances, replayed)" : " (own instances)");
  std::printf("%-40s %-8s %6s %8s %8s %8s %12s\n", "method", "metric", "cells", "|z|<=3", "mean z", "max |z|",
              "max |diff|");
  bool recomputed = false;
  for (const ZScores& z : scores) {
    recomputed |= z.reference == "replayed";
    std::printf("%-40s %-7s%s %6d %8d %+8.2f %8.2f %12.2e\n", std::string(description(z.method)).c_str(),
                z.metric.c_str(), z.reference == "replayed" ? "*" : " ", z.cells, z.within, z.mean, z.largest,
                z.largest_difference);
  }
  if (recomputed)
    std::printf(
        "* the table lists regret only; TV is compared with the published instances solved by this "
        "program\n");
  std::printf("The published LobsDICE numbers come from the as-run closed form, which ignores the expert.\n");
}

void run_grid_command(const Arguments& arguments) {
  const GridResult result = run_grid(arguments.grid, ProgressLine("tabular", arguments.quiet));
  const auto cells = summarise(result.records);
  const auto scores = compare(arguments, cells);
  if (!arguments.out.empty()) write_report(arguments.out, arguments.grid, result, scores);
  if (arguments.json) {
    std::fputs(summary_json(arguments.grid, result, cells, scores).c_str(), stdout);
    return;
  }
  print_means(arguments, cells);
  print_scores(arguments, scores);
  std::printf("\n%zu solves in %.1f s\n", result.records.size(), result.seconds);
  for (const Record& r : result.records)
    if (!r.error.empty())
      std::printf("failed: %s, expert %d, agnostic %d, eta %g, instance %d: %s\n",
                  std::string(name(r.method)).c_str(), r.cell.expert_size, r.cell.agnostic_size, r.cell.eta,
                  r.index, r.error.c_str());
  if (!arguments.out.empty()) std::printf("Figures and tables: %s/index.html\n", arguments.out.c_str());
}

void run_scaling_command(const Arguments& arguments) {
  ScalingOptions options;
  options.states = arguments.states;
  options.seed = arguments.grid.seed;
  if (arguments.grid.etas.size() == 1) options.eta = arguments.grid.etas[0];
  const ScalingReport r = run_scaling(options);
  if (arguments.json) {
    const nlohmann::json out{{"states", r.states},
                             {"expert_states", r.expert_states},
                             {"iterations", r.iterations},
                             {"data_seconds", r.data_seconds},
                             {"solve_seconds", r.solve_seconds},
                             {"solve_megabytes", r.solve_megabytes},
                             {"peak_megabytes", r.peak_megabytes},
                             {"objective", r.objective},
                             {"duality_gap", r.duality_gap},
                             {"constraint_residual", r.constraint_residual},
                             {"converged", r.converged},
                             {"regret", r.metrics.regret}};
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  std::printf("PW-DICE Reg, %d states, %d expert states: %d Newton steps, %.2f s (data %.2f s)\n", r.states,
              r.expert_states, r.iterations, r.solve_seconds, r.data_seconds);
  std::printf("objective %.10f, duality gap %.1e, constraint residual %.1e, %s\n", r.objective, r.duality_gap,
              r.constraint_residual, r.converged ? "converged" : "NOT converged");
  std::printf("memory: %.1f MB for the solve, %.1f MB peak of the process; regret %.5f\n", r.solve_megabytes,
              r.peak_megabytes, r.metrics.regret);
}

}  // namespace

void add_tabular_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* tabular = app.add_subcommand(
      "tabular",
      "The paper's experiment on random MDPs: exact solvers, figures, z-scores against the published table");
  tabular->add_option("--instances", arguments->grid.instances, "MDPs per cell")->capture_default_str();
  tabular
      ->add_option("--sizes", arguments->sizes,
                   "data sizes, used for expert and agnostic data [10,100,1000,10000]")
      ->delimiter(',');
  tabular->add_option("--etas", arguments->grid.etas, "randomness of the transitions [0.01,0.1,1]")
      ->delimiter(',');
  tabular->add_option("--experts", arguments->experts, "det, soft or both [det,soft]")->delimiter(',');
  tabular
      ->add_option("--methods", arguments->methods,
                   "lp, reg, reg-paper, chi2, smodice-kl, smodice-chi2, lobsdice, lobsdice-as-run [all]")
      ->delimiter(',');
  tabular->add_option("--threads", arguments->grid.threads, "0 = all cores")->capture_default_str();
  tabular->add_option("--seed", arguments->grid.seed, "of our own instances")->capture_default_str();
  tabular->add_option("--out", arguments->out, "directory for CSV, JSON and figures");
  tabular->add_flag("--replay-published", arguments->grid.replay_published,
                    "solve the published instances instead of new ones");
  tabular->add_flag("!--no-tv-reference", arguments->tv_reference,
                    "skip solving the published instances, which the TV z-scores need");
  tabular->add_option("--states", arguments->states, "instead of the grid, solve one MDP of so many states");
  tabular->add_flag("--json", arguments->json, "print the summary as JSON");
  tabular->add_flag("--quiet", arguments->quiet, "no progress");
  tabular->callback([arguments] {
    resolve(*arguments);
    arguments->states > 0 ? run_scaling_command(*arguments) : run_grid_command(*arguments);
  });
}

}  // namespace pwdice
