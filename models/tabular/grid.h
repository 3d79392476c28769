// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data.h"
#include "metrics.h"
#include "solution.h"

namespace pwdice::tabular {

enum class Method {
  Lp,         // PW-DICE, linear programme
  Reg,        // PW-DICE KL with the references of the published runs (U transposed, floors)
  RegPaper,   // PW-DICE KL, the programme of the paper's dual
  Chi2,       // PW-DICE chi2, exact conjugate
  SmodiceKl,  // SMODICE
  SmodiceChi2,
  Lobsdice,       // as intended; our reading
  LobsdiceAsRun,  // the closed form behind the published numbers: does not use the expert
};
const std::vector<Method>& all_methods();
std::string_view name(Method method);         // for files and options: "reg"
std::string_view description(Method method);  // for people, with the caveats
std::optional<Method> method_from_name(std::string_view text);

Solution solve(Method method, const Problem& problem);

struct GridOptions {
  std::vector<int> expert_sizes{10, 100, 1000, 10000}, agnostic_sizes{10, 100, 1000, 10000};
  std::vector<double> etas{0.01, 0.1, 1.0};
  std::vector<ExpertKind> experts{ExpertKind::Deterministic, ExpertKind::Softmax};
  std::vector<Method> methods = all_methods();
  int instances = 10;
  int threads = 0;  // 0: all cores
  uint32_t seed = 1;
  bool replay_published =
      false;  // the published instances instead of our own; sizes and etas select among them
};

// One solver on one instance.
struct Record {
  CellKey cell;
  int index = 0;
  ExpertKind expert = ExpertKind::Deterministic;
  Method method = Method::Lp;
  Metrics metrics;  // NaN if `error` is not empty
  double objective = 0;
  bool converged = false;
  double seconds = 0;
  std::string error;
};

struct GridResult {
  std::vector<Record> records;  // in the order cell, index, expert, method, whatever the thread count
  double seconds = 0;
};

// `progress(done, total)` counts instances; it is called by one thread at a time.
GridResult run_grid(const GridOptions& options,
                    const std::function<void(int done, int total)>& progress = {});

struct Moments {
  double mean = 0, deviation = 0;  // population, as published
};
struct CellSummary {
  CellKey cell;
  ExpertKind expert;
  Method method;
  int count = 0, failures = 0;
  Moments regret, tv_s, tv_ss;
};
std::vector<CellSummary> summarise(const std::vector<Record>& records);

}  // namespace pwdice::tabular
