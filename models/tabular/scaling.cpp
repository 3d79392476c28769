// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "scaling.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "../../kernels/error.h"

namespace pwdice::tabular {
namespace {

constexpr int kGoalCandidates = 16;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

ScalingReport run_scaling(const ScalingOptions& options) {
  PWDICE_CHECK(options.states >= 5, "scaling: {} states, expected at least 5", options.states);
  const double start = now();
  LegacyRandom random(options.seed);
  const RandomMdpOptions mdp_options{
      .n_states = options.states, .eta = options.eta, .goal_candidates = kGoalCandidates};
  const int agnostic = options.agnostic_size > 0 ? options.agnostic_size : 50 * options.states;
  const int expert = options.expert_size > 0 ? options.expert_size : 5 * options.states;
  const Instance instance = draw_instance(mdp_options, expert, agnostic, random);
  const Problem problem =
      estimate_problem(instance.agnostic, instance.deterministic_expert, instance.mdp.n_actions(),
                       instance.mdp.p0, {.gamma = instance.mdp.gamma, .expert_pairs = false});

  ScalingReport report;
  report.states = options.states;
  report.expert_states = static_cast<int>(
      std::count_if(problem.expert_s.begin(), problem.expert_s.end(), [](double d) { return d > 0; }));
  const double before = peak_megabytes(), solve_start = now();
  report.data_seconds = solve_start - start;
  const RegSolution solution = solve_reg(problem, options.reg);
  report.solve_seconds = now() - solve_start;
  report.peak_megabytes = peak_megabytes();
  report.solve_megabytes = report.peak_megabytes - before;
  report.iterations = solution.iterations;
  report.objective = solution.objective;
  report.duality_gap = solution.duality_gap;
  report.constraint_residual = solution.constraint_residual;
  report.converged = solution.converged;
  report.metrics = evaluate(instance.mdp, instance.experts.deterministic, solution.policy);
  return report;
}

}  // namespace pwdice::tabular
