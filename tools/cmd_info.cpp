// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "../kernels/version.h"
#include "../models/run/environment_report.h"
#include "../models/run/run.h"
#include "commands.h"

namespace pwdice::tools {

void add_info_command(CLI::App& app) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* info = app.add_subcommand("info", "Say what this build can do here: CPU, SIMD, CUDA and why");
  info->add_flag("--json", *as_json, "print one JSON object");
  info->callback([as_json] {
    std::string why;
    Config config;
    ContextOptions options;
    options.backend = choose_backend(config, &why);
    options.scratch_bytes = 1 << 20;
    Context ctx(options);
    const std::string report = environment_report(ctx);
    if (*as_json) {
      std::fputs(report.c_str(), stdout);
      return;
    }
    const auto r = nlohmann::json::parse(report);
    std::printf("pwdice %s, built with %s\n", PWDICE_VERSION, r["compiler"].get<std::string>().c_str());
    std::printf("CPU      %s, %d threads, SIMD target %s\n", r["cpu"].get<std::string>().c_str(), r["threads"].get<int>(),
                r["simd"].get<std::string>().c_str());
    std::printf("CUDA     %s: %s\n", r["cuda"]["available"].get<bool>() ? "available" : "not available", why.c_str());
    std::printf("backend  %s\n", r["backend"].get<std::string>().c_str());
  });
}

}  // namespace pwdice::tools
