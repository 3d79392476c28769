// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "grid.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <thread>

#include "../../kernels/error.h"
#include "chi2.h"
#include "highs.h"
#include "lobsdice.h"
#include "lp.h"
#include "reg.h"
#include "smodice.h"

namespace pwdice::tabular {
namespace {

struct MethodEntry {
  Method method;
  std::string_view name, description;
};
constexpr std::array<MethodEntry, 8> kMethods{{
    {Method::Lp, "lp", "PW-DICE LP"},
    {Method::Reg, "reg", "PW-DICE Reg (references as published)"},
    {Method::RegPaper, "reg-paper", "PW-DICE Reg (the paper's dual)"},
    {Method::Chi2, "chi2", "PW-DICE chi2"},
    {Method::SmodiceKl, "smodice-kl", "SMODICE KL"},
    {Method::SmodiceChi2, "smodice-chi2", "SMODICE chi2"},
    {Method::Lobsdice, "lobsdice", "LobsDICE (as intended, our reading)"},
    {Method::LobsdiceAsRun, "lobsdice-as-run", "LobsDICE as run (ignores the expert)"},
}};

const MethodEntry& entry(Method method) { return kMethods[static_cast<size_t>(method)]; }

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One 32-bit seed per instance, so that an instance does not depend on which others are run (splitmix64).
uint32_t instance_seed(uint32_t seed, const CellKey& cell, int index) {
  uint64_t state = seed;
  const auto mix = [&](uint64_t value) {
    state += 0x9e3779b97f4a7c15ull + value;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    state = z ^ (z >> 31);
  };
  mix(static_cast<uint64_t>(cell.expert_size));
  mix(static_cast<uint64_t>(cell.agnostic_size));
  mix(static_cast<uint64_t>(std::llround(cell.eta * 1e9)));
  mix(static_cast<uint64_t>(index));
  return static_cast<uint32_t>(state);
}

struct Job {
  CellKey cell;
  int index;
  std::optional<Instance> instance;  // replayed ones are drawn beforehand: their stream is sequential
};

std::vector<Job> own_jobs(const GridOptions& options) {
  std::vector<Job> jobs;
  for (const double eta : options.etas)
    for (const int expert : options.expert_sizes)
      for (const int agnostic : options.agnostic_sizes)
        for (int index = 0; index < options.instances; ++index)
          jobs.push_back({{expert, agnostic, eta}, index, {}});
  return jobs;
}

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<Job> published_jobs(const GridOptions& options) {
  std::vector<Job> jobs;
  replay_published([&](const CellKey& cell, int index, Instance&& instance) {
    if (contains(options.expert_sizes, cell.expert_size) &&
        contains(options.agnostic_sizes, cell.agnostic_size) && contains(options.etas, cell.eta) &&
        index < options.instances)
      jobs.push_back({cell, index, std::move(instance)});
    return true;
  });
  return jobs;
}

void run_method(const Instance& instance, const Problem& problem, Record& record) {
  const double start = now();
  try {
    const Solution solution = solve(record.method, problem);
    record.seconds = now() - start;
    record.objective = solution.objective;
    record.converged = solution.converged;
    record.metrics = evaluate(instance.mdp, instance.experts.of(record.expert), solution.policy);
  } catch (const Error& error) {
    // One instance that a solver cannot do must not end the experiment; it is counted and reported.
    record.error = error.what();
    record.metrics.regret = record.metrics.tv_s = record.metrics.tv_ss =
        std::numeric_limits<double>::quiet_NaN();
  }
}

void run_job(const GridOptions& options, const Job& job, Record* records) {
  std::optional<Instance> own;
  if (!job.instance) {
    LegacyRandom random(instance_seed(options.seed, job.cell, job.index));
    own = draw_instance({.eta = job.cell.eta}, job.cell.expert_size, job.cell.agnostic_size, random);
  }
  const Instance& instance = own ? *own : *job.instance;
  for (const ExpertKind expert : options.experts) {
    const Problem problem =
        estimate_problem(instance.agnostic, instance.expert(expert), instance.mdp.n_actions(),
                         instance.mdp.p0, {.gamma = instance.mdp.gamma, .expert_pairs = true});
    for (const Method method : options.methods) {
      Record& record = *records++;
      record.cell = job.cell;
      record.index = job.index;
      record.expert = expert;
      record.method = method;
      run_method(instance, problem, record);
    }
  }
}

void check_options(const GridOptions& options) {
  PWDICE_CHECK(options.instances >= 1, "grid: {} instances per cell, expected at least 1", options.instances);
  PWDICE_CHECK(!options.expert_sizes.empty() && !options.agnostic_sizes.empty() && !options.etas.empty() &&
                   !options.experts.empty() && !options.methods.empty(),
               "grid: sizes, etas, experts and methods must each name at least one value");
  for (const int size : options.expert_sizes)
    PWDICE_CHECK(size >= 1, "grid: expert size {}, expected at least 1", size);
  for (const int size : options.agnostic_sizes)
    PWDICE_CHECK(size >= 1, "grid: agnostic size {}, expected at least 1", size);
  for (const double eta : options.etas)
    PWDICE_CHECK(eta >= 0 && eta <= 1, "grid: eta is {}, expected 0 <= eta <= 1", eta);
  if (contains(options.methods, Method::Lp) && !highs_missing_reason().empty())
    fail(ErrorCode::Unsupported, "grid: {}", highs_missing_reason());
}

Moments moments(const std::vector<double>& values) {
  Moments out;
  for (const double value : values) out.mean += value / static_cast<double>(values.size());
  for (const double value : values)
    out.deviation += (value - out.mean) * (value - out.mean) / static_cast<double>(values.size());
  out.deviation = std::sqrt(out.deviation);
  return out;
}

}  // namespace

const std::vector<Method>& all_methods() {
  static const std::vector<Method> methods = [] {
    std::vector<Method> out;
    for (const auto& e : kMethods) out.push_back(e.method);
    return out;
  }();
  return methods;
}

std::string_view name(Method method) { return entry(method).name; }
std::string_view description(Method method) { return entry(method).description; }

std::optional<Method> method_from_name(std::string_view text) {
  for (const auto& e : kMethods)
    if (e.name == text) return e.method;
  return std::nullopt;
}

Solution solve(Method method, const Problem& problem) {
  switch (method) {
    case Method::Lp:
      return solve_pwdice_lp(problem);
    case Method::Reg:
      return solve_reg(problem);
    case Method::RegPaper:
      return solve_reg(problem, {.convention = UConvention::Paper});
    case Method::Chi2:
      return solve_chi2(problem);
    case Method::SmodiceKl:
      return solve_smodice_kl(problem);
    case Method::SmodiceChi2:
      return solve_smodice_chi2(problem);
    case Method::Lobsdice:
      return solve_lobsdice(problem);
    case Method::LobsdiceAsRun:
      return lobsdice_as_run(problem);
  }
  fail(ErrorCode::Internal, "grid: unknown method {}", static_cast<int>(method));
}

GridResult run_grid(const GridOptions& options, const std::function<void(int, int)>& progress) {
  check_options(options);
  const double start = now();
  const std::vector<Job> jobs = options.replay_published ? published_jobs(options) : own_jobs(options);
  const size_t per_job = options.experts.size() * options.methods.size();
  GridResult result;
  result.records.resize(jobs.size() * per_job);

  std::atomic<size_t> next{0};
  std::mutex report;
  int done = 0;
  std::exception_ptr failure;
  const auto work = [&] {
    for (size_t k = next++; k < jobs.size(); k = next++) {
      try {
        run_job(options, jobs[k], result.records.data() + k * per_job);
      } catch (...) {
        const std::lock_guard lock(report);
        failure = std::current_exception();
        next = jobs.size();
      }
      const std::lock_guard lock(report);
      if (progress) progress(++done, static_cast<int>(jobs.size()));
    }
  };
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  std::vector<std::jthread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  pool.clear();  // joins
  if (failure) std::rethrow_exception(failure);
  result.seconds = now() - start;
  return result;
}

std::vector<CellSummary> summarise(const std::vector<Record>& records) {
  struct Values {
    std::vector<double> regret, tv_s, tv_ss;
  };
  std::vector<CellSummary> cells;
  std::vector<Values> values;
  for (const Record& r : records) {
    const auto same = [&](const CellSummary& c) {
      return c.cell == r.cell && c.expert == r.expert && c.method == r.method;
    };
    const auto k = static_cast<size_t>(std::find_if(cells.begin(), cells.end(), same) - cells.begin());
    if (k == cells.size()) {
      cells.push_back({r.cell, r.expert, r.method, 0, 0, {}, {}, {}});
      values.emplace_back();
    }
    if (!r.error.empty()) {
      ++cells[k].failures;
      continue;
    }
    ++cells[k].count;
    values[k].regret.push_back(r.metrics.regret);
    values[k].tv_s.push_back(r.metrics.tv_s);
    values[k].tv_ss.push_back(r.metrics.tv_ss);
  }
  for (size_t k = 0; k < cells.size(); ++k) {
    cells[k].regret = moments(values[k].regret);
    cells[k].tv_s = moments(values[k].tv_s);
    cells[k].tv_ss = moments(values[k].tv_ss);
  }
  return cells;
}

}  // namespace pwdice::tabular
