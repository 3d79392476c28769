// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// What the benchmarks of one program share. A file of benchmarks has one function register_<name>(Suite&),
// which main.cpp calls; each benchmark verifies its op and then times it with time_iterations().

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "machine.h"

namespace pwdice::bench {

struct Suite {
  Context& ctx;     // all threads
  Context& single;  // one thread
  Machine machine;  // of ctx
};

// Each file of benchmarks.
void register_linear(Suite& suite);
void register_networks(Suite& suite);
void register_train_steps(Suite& suite);
void register_act(Suite& suite);
void register_infonce(Suite& suite);
void register_transport(Suite& suite);

// Ends a benchmark whose result is wrong; the program then ends with 1.
inline bool any_failed = false;
inline void fail(benchmark::State& state, const char* why) {
  any_failed = true;
  state.SkipWithError(why);
}

inline double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Times `body` and puts beside the mean that GoogleBenchmark prints: median and best, the machine's bound for
// `work`, how many times the bound the median is, and the share of its best that the machine gave meanwhile.
template <class Body>
void time_iterations(benchmark::State& state, Context& ctx, const Machine& machine, const Work& work,
                     Body&& body) {
  using Clock = std::chrono::steady_clock;
  constexpr double kBetweenBursts = 5e-3;
  for (int i = 0; i < 3; ++i) body();
  std::vector<double> seconds, bounds;
  seconds.reserve(static_cast<size_t>(state.max_iterations));
  double since_burst = kBetweenBursts;
  for (auto _ : state) {
    if (since_burst >= kBetweenBursts) {
      state.PauseTiming();
      bounds.push_back(bound_seconds_now(ctx, work)), since_burst = 0;
      state.ResumeTiming();
    }
    const auto start = Clock::now();
    body();
    const std::chrono::duration<double> time = Clock::now() - start;
    seconds.push_back(time.count()), since_burst += time.count();
  }
  if (seconds.empty()) return;
  // What the machine gave meanwhile, where neighbours left it less at the start: a bound that flatters is none.
  const double now = median(bounds), bound = std::min(bound_seconds(machine, work), now);
  const double middle = median(seconds);
  state.counters["median_ms"] = middle * 1e3;
  state.counters["best_ms"] = *std::min_element(seconds.begin(), seconds.end()) * 1e3;
  if (bound <= 0) return;
  state.counters["machine"] = bound / now;
  state.counters["bound_ms"] = bound * 1e3;
  state.counters["x_bound"] = middle / bound;
  state.counters["GFLOP/s"] = work.flop / middle * 1e-9;
}

// `run` is called as run(state).
template <class Run>
benchmark::internal::Benchmark* add(const std::string& name, Run run) {
  return benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMillisecond);
}

}  // namespace pwdice::bench
