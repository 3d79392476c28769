// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "fault.h"

#include <driver_types.h>

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string>

#include "fiber.h"
#include "ptxcpu.h"
#include "registry.h"
#include "report.h"
#include "thread.h"

namespace ptxcpu {
namespace {

struct Reports {
  std::mutex mutex;
  std::string last;
  uint64_t count = 0;
};

Reports& reports() {
  static auto* instance = new Reports;
  return *instance;
}

int error_code(Fault kind) {
  switch (kind) {
    case Fault::kIllegalAddress:
      return cudaErrorIllegalAddress;
    case Fault::kMisaligned:
      return cudaErrorMisalignedAddress;
    case Fault::kAssert:
      return cudaErrorAssert;
    case Fault::kTrap:
      return cudaErrorIllegalInstruction;
    case Fault::kDeadlock:
      return cudaErrorLaunchTimeout;
    case Fault::kUninitialized:
    case Fault::kRace:
    case Fault::kBarrier:
    case Fault::kWarp:
      return cudaErrorLaunchFailure;
  }
  return cudaErrorUnknown;
}

void report_in_launch(Thread* thread, int site, Fault kind, const char* format, va_list arguments) {
  Launch* launch = thread->block->launch;
  if (launch->failed) return;  // the first fault explains the launch
  char what[512];
  std::vsnprintf(what, sizeof what, format, arguments);
  const uint32_t* block = thread->block->block_id;
  char where[128];
  std::snprintf(where, sizeof where, "block (%u,%u,%u), thread (%u,%u,%u)", block[0], block[1], block[2],
                thread->tid[0], thread->tid[1], thread->tid[2]);
  launch->failed = true;
  launch->error = error_code(kind);
  add_report(std::string(what) + "; kernel " + short_kernel_name(launch->kernel->name) + ", " +
             site_text(launch->module, site) + ", " + where);
}

}  // namespace

void add_report(const std::string& text) {
  Reports& all = reports();
  const std::lock_guard lock(all.mutex);
  all.last = text;
  ++all.count;
  std::fprintf(stderr, "ptxcpu: %s\n", text.c_str());
}

void clear_reports() {
  Reports& all = reports();
  const std::lock_guard lock(all.mutex);
  all.last.clear();
  all.count = 0;
}

void report_fault(Thread* thread, int site, Fault kind, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report_in_launch(thread, site, kind, format, arguments);
  va_end(arguments);
}

void fault(Thread* thread, int site, Fault kind, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report_in_launch(thread, site, kind, format, arguments);
  va_end(arguments);
  for (;;) yield_to_scheduler(thread);
}

}  // namespace ptxcpu

extern "C" const char* ptxcpu_last_report(void) { return ptxcpu::reports().last.c_str(); }
extern "C" uint64_t ptxcpu_report_count(void) { return ptxcpu::reports().count; }
