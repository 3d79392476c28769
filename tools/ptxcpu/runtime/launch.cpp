// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "launch.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <memory>
#include <vector>

#include "checks.h"
#include "fault.h"
#include "options.h"
#include "resident_block.h"

namespace ptxcpu {
namespace {

using Clock = std::chrono::steady_clock;

// Blocks normally run one after another in one ResidentBlock. A block that only polls (it waits for
// another block: a decoupled look-back, a grid-wide sync) is set aside and the next one started.
class GridRunner {
 public:
  GridRunner(const KernelRef& kernel, const LaunchShape& shape, const uint8_t* params)
      : shape_(shape), launch_{kernel.module, kernel.kernel, false, 0} {
    params_.resize(kernel.kernel->param_bytes / sizeof(uint64_t) + 1);
    std::memcpy(params_.data(), params, kernel.kernel->param_bytes);
    const bool counted = kernel.module->flags & kModuleCounted;
    if (counted) units_.resize(kernel.module->unit_total);
    if (counted && options().counting) sites_.resize(size_t(kernel.module->site_count) + 1);
  }

  int run() {
    begin_global_checks();
    const auto block_count = uint32_t(uint64_t(shape_.grid[0]) * shape_.grid[1] * shape_.grid[2]);
    constexpr uint64_t kBlockSalt = 12345;
    const uint32_t limit = options().block_limit ? options().block_limit : block_count;
    uint32_t executed = 0;
    for (const uint32_t id : execution_order(block_count, kBlockSalt)) {
      if (launch_.failed || executed == limit) break;
      run_new_block(id);
      ++executed;
    }
    while (!launch_.failed && !stalled_.empty()) retry_stalled();
    if (!sites_.empty()) {
      const uint32_t threads = shape_.block[0] * shape_.block[1] * shape_.block[2];
      const uint32_t shared = launch_.kernel->shared_bytes + shape_.dynamic_shared_bytes;
      add_launch_counters(launch_, {block_count, executed, threads, shared}, units_, sites_);
    }
    return launch_.failed ? launch_.error : 0;
  }

 private:
  static constexpr size_t kMaxResident = 512;

  void run_new_block(uint32_t id) {
    if (!idle_) {
      idle_ = std::make_unique<ResidentBlock>(&launch_, shape_, reinterpret_cast<uint8_t*>(params_.data()),
                                              units_.data(), sites_.empty() ? nullptr : sites_.data());
    }
    idle_->start(id);
    const BlockStatus status = idle_->run();
    last_progress_ = Clock::now();
    if (status != BlockStatus::kStalled) {
      if (!stalled_.empty()) retry_stalled();
      return;
    }
    stalled_.push_back(std::move(idle_));
    while (!launch_.failed && stalled_.size() >= kMaxResident) retry_stalled();
  }

  void retry_stalled() {
    bool progress = false;
    for (auto block = stalled_.begin(); block != stalled_.end() && !launch_.failed;) {
      if ((*block)->run() == BlockStatus::kStalled) {
        ++block;
        continue;
      }
      progress = true;
      idle_ = std::move(*block);
      block = stalled_.erase(block);
    }
    if (progress || stalled_.empty()) {
      last_progress_ = Clock::now();
    } else if (std::chrono::duration<double>(Clock::now() - last_progress_).count() >
               options().timeout_seconds) {
      Thread* thread = stalled_.front()->waiting_thread();
      report_fault(thread, thread->site, Fault::kDeadlock, "timeout: %zu blocks do nothing but poll memory",
                   stalled_.size());
    }
  }

  LaunchShape shape_;
  Launch launch_;
  std::vector<uint64_t> params_;  // words, for alignment
  std::vector<uint64_t> units_;
  std::vector<SiteTotals> sites_;
  std::unique_ptr<ResidentBlock> idle_;
  std::list<std::unique_ptr<ResidentBlock>> stalled_;
  Clock::time_point last_progress_ = Clock::now();
};

}  // namespace

int run_launch(const KernelRef& kernel, const LaunchShape& shape, const uint8_t* params) {
  const auto begin = Clock::now();
  const int error = GridRunner(kernel, shape, params).run();
  if (options().trace) {
    std::fprintf(stderr, "ptxcpu: %s <<<(%u,%u,%u), (%u,%u,%u), %u>>> error %d, %.3f s\n",
                 short_kernel_name(kernel.kernel->name).c_str(), shape.grid[0], shape.grid[1], shape.grid[2],
                 shape.block[0], shape.block[1], shape.block[2], shape.dynamic_shared_bytes, error,
                 std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return error;
}

}  // namespace ptxcpu
