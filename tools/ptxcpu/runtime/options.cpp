// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "options.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace ptxcpu {
namespace {

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool* find_check(Options& options, const std::string& name) {
  if (name == "shared_races") return &options.check_shared_races;
  if (name == "warp_races") return &options.check_warp_races;
  if (name == "shared_init") return &options.check_shared_init;
  if (name == "exited") return &options.check_exited_lanes;
  if (name == "global_init") return &options.check_global_init;
  if (name == "block_races") return &options.check_block_races;
  return nullptr;
}

void apply_checks(Options& options, const std::string& text) {
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    if (item.empty()) continue;
    const bool enabled = item[0] != '-';
    const std::string name = item[0] == '-' || item[0] == '+' ? item.substr(1) : item;
    if (bool* check = find_check(options, name)) {
      *check = enabled;
    } else {
      std::fprintf(stderr, "ptxcpu: PTXCPU_CHECKS names no check: %s\n", name.c_str());
    }
  }
}

Options read_environment() {
  Options options;
  const std::string order = environment("PTXCPU_ORDER");
  if (order == "reversed") options.order = Order::kReversed;
  if (order == "shuffled") options.order = Order::kShuffled;
  if (const char* seed = std::getenv("PTXCPU_SEED")) options.seed = std::strtoull(seed, nullptr, 0);
  if (const char* timeout = std::getenv("PTXCPU_TIMEOUT")) options.timeout_seconds = std::atof(timeout);
  options.trace = *environment("PTXCPU_TRACE") == '1';
  options.counting = *environment("PTXCPU_COUNT") != '0';
  options.counters_path = environment("PTXCPU_COUNTERS");
  apply_checks(options, environment("PTXCPU_CHECKS"));
  return options;
}

}  // namespace

Options& options() {
  static Options instance = read_environment();
  return instance;
}

bool set_check(const std::string& name, bool enabled) {
  bool* check = find_check(options(), name);
  if (check) *check = enabled;
  return check != nullptr;
}

}  // namespace ptxcpu
