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

// Times `body` and puts beside the mean that GoogleBenchmark prints: the median, the machine's bound for
// `work` and how many times the bound the median is.
template <class Body>
void time_iterations(benchmark::State& state, const Machine& machine, const Work& work, Body&& body) {
  for (int i = 0; i < 3; ++i) body();
  std::vector<double> seconds;
  seconds.reserve(static_cast<size_t>(state.max_iterations));
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    seconds.push_back(time.count());
  }
  if (seconds.empty()) return;
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                   seconds.end());
  const double median = seconds[seconds.size() / 2], bound = bound_seconds(machine, work);
  state.counters["median_ms"] = median * 1e3;
  state.counters["best_ms"] = *std::min_element(seconds.begin(), seconds.end()) * 1e3;
  if (bound <= 0) return;
  state.counters["bound_ms"] = bound * 1e3;
  state.counters["x_bound"] = median / bound;
  state.counters["GFLOP/s"] = work.flop / median * 1e-9;
}

// `run` is called as run(state).
template <class Run>
benchmark::internal::Benchmark* add(const std::string& name, Run run) {
  return benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMillisecond);
}

}  // namespace pwdice::bench
