// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "state.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "options.h"
#include "ptxcpu.h"
#include "report.h"

namespace ptxcpu {
namespace {

thread_local cudaError_t t_last_error = cudaSuccess;

// "cudaMalloc:3:2,*:0:35": call, nth, error.
void inject_from_environment(Runtime* state) {
  const char* text = std::getenv("PTXCPU_INJECT");
  std::stringstream stream(text ? text : "");
  for (std::string item; std::getline(stream, item, ',');) {
    const size_t first = item.find(':'), second = item.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    state->inject(item.substr(0, first), std::atoi(item.c_str() + first + 1),
                  static_cast<cudaError_t>(std::atoi(item.c_str() + second + 1)));
  }
}

}  // namespace

Runtime& runtime() {
  static Runtime* instance = [] {
    auto* created = new Runtime;  // outlives static destructors that call the runtime
    inject_from_environment(created);
    return created;
  }();
  return *instance;
}

bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

cudaError_t Runtime::injected(const std::string& call) {
  for (auto entry = injections_.begin(); entry != injections_.end(); ++entry) {
    if (entry->call != "*" && entry->call != call) continue;
    if (entry->remaining == 0) return entry->error;
    if (--entry->remaining > 0) continue;
    const cudaError_t error = entry->error;
    injections_.erase(entry);
    return error;
  }
  return cudaSuccess;
}

cudaError_t Runtime::enter(const char* call) {
  ++calls_[call];
  if (sticky_ != cudaSuccess) return sticky_;
  const cudaError_t error = injected(call);
  if (is_sticky(error)) poison(error);
  return error;
}

cudaError_t Runtime::finish(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) t_last_error = error;
  return error;
}

void Runtime::poison(cudaError_t error) {
  if (sticky_ == cudaSuccess) sticky_ = error;
}

cudaError_t Runtime::take_last_error(bool clear) {
  if (sticky_ != cudaSuccess) return sticky_;
  const cudaError_t error = t_last_error;
  if (clear) t_last_error = cudaSuccess;
  return error;
}

void Runtime::inject(const std::string& call, int nth, cudaError_t error) {
  injections_.push_back({call, nth, error});
}

bool Runtime::has_driver() const {
  return std::none_of(injections_.begin(), injections_.end(),
                      [](const Injection& entry) { return entry.call == "*" && entry.remaining == 0; });
}

uint64_t Runtime::call_count(const std::string& call) const {
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

void Runtime::reset() {
  sticky_ = t_last_error = cudaSuccess;
  injections_.clear();
  calls_.clear();
}

}  // namespace ptxcpu

using ptxcpu::runtime;

extern "C" {

void ptxcpu_inject(const char* call, int nth, int error) {
  const std::lock_guard lock(runtime().mutex());
  runtime().inject(call, nth, static_cast<cudaError_t>(error));
}

uint64_t ptxcpu_call_count(const char* call) {
  const std::lock_guard lock(runtime().mutex());
  return runtime().call_count(call);
}

void ptxcpu_reset(void) {
  const std::lock_guard lock(runtime().mutex());
  runtime().reset();
  ptxcpu::clear_reports();
}

int ptxcpu_set_order(const char* order, uint64_t seed) {
  const std::string name = order;
  auto& options = ptxcpu::options();
  if (name == "forward") {
    options.order = ptxcpu::Order::kForward;
  } else if (name == "reversed") {
    options.order = ptxcpu::Order::kReversed;
  } else if (name == "shuffled") {
    options.order = ptxcpu::Order::kShuffled;
  } else {
    return -1;
  }
  options.seed = seed;
  return 0;
}

void ptxcpu_set_counting(int enabled) { ptxcpu::options().counting = enabled != 0; }

void ptxcpu_set_block_limit(uint32_t blocks) { ptxcpu::options().block_limit = blocks; }

void ptxcpu_set_timeout(double seconds) { ptxcpu::options().timeout_seconds = seconds; }

int ptxcpu_set_check(const char* name, int enabled) { return ptxcpu::set_check(name, enabled != 0) ? 0 : -1; }
}
