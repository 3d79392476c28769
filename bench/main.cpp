// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// pwdice_bench [--threads=N] [options of GoogleBenchmark]: see README.md for the method.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "suite.h"

namespace {

// Takes --threads=N out of the arguments; 0 is all cores the process may use. More than those would take turns, and the
// best of each, which the bound is made of, would not be had at the same time.
int take_threads(int& argc, char** argv) {
  int threads = 0, kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--threads=", 10) == 0) {
      const char* const text = argv[i] + 10;
      const auto [end, error] = std::from_chars(text, text + std::strlen(text), threads);
      if (error != std::errc() || *end != '\0' || threads < 0)
        throw std::invalid_argument("--threads=" + std::string(text) +
                                    ": expected a number of threads, 0 for all cores");
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  const int cores = pwdice::Context({.scratch_bytes = 0}).threads();
  if (threads > cores)
    throw std::invalid_argument("--threads=" + std::to_string(threads) + ": this process may use " +
                                std::to_string(cores) + " cores");
  return threads;
}

void add_context(const char* name, double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  benchmark::AddCustomContext(name, text);
}

void run(int argc, char** argv) {
  pwdice::ContextOptions options, one;
  options.threads = take_threads(argc, argv);
  one.threads = 1;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) throw std::invalid_argument("unknown option");
  pwdice::Context ctx(options), single(one);
  pwdice::bench::Suite suite{ctx, single, pwdice::bench::measure_machine(ctx)};
  benchmark::AddCustomContext("simd", pwdice::cpu_target());
  benchmark::AddCustomContext("threads", std::to_string(ctx.threads()));
  add_context("fma_gflop_per_s", suite.machine.flop_per_s * 1e-9);
  add_context("exp_g_per_s", suite.machine.exp_per_s * 1e-9);
  add_context("tanh_g_per_s", suite.machine.tanh_per_s * 1e-9);
  pwdice::bench::register_train_steps(suite);
  pwdice::bench::register_networks(suite);
  pwdice::bench::register_linear(suite);
  pwdice::bench::register_act(suite);
  pwdice::bench::register_infonce(suite);
  pwdice::bench::register_transport(suite);
  if (benchmark::RunSpecifiedBenchmarks() == 0) throw std::invalid_argument("no benchmark has such a name");
  benchmark::Shutdown();
  if (pwdice::bench::any_failed) throw std::runtime_error("a benchmark has failed; its line says why");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pwdice_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
