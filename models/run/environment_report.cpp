// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "environment_report.h"

#include <sys/utsname.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "../../kernels/version.h"

namespace pwdice {
namespace {

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

std::string environment_report(Context& ctx) {
  const CudaAvailability cuda = cuda_availability();
  utsname system{};
  uname(&system);
  const nlohmann::json report{{"pwdice", PWDICE_VERSION},
                              {"compiler", __VERSION__},
                              {"system", std::string(system.sysname) + " " + system.release + " " + system.machine},
                              {"cpu", cpu_model()},
                              {"cores", std::thread::hardware_concurrency()},
                              {"simd", cpu_target()},
                              {"threads", ctx.threads()},
                              {"backend", ctx.on_gpu() ? "cuda" : "cpu"},
                              {"cuda", {{"available", cuda.available}, {"reason", cuda.reason}}}};
  return report.dump(2) + "\n";
}

}  // namespace pwdice
