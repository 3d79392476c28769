// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <memory>

#include "context.h"

namespace pwdice {

namespace cuda {
struct Graph;
struct GraphDeleter {
  void operator()(Graph*) const noexcept;
};
}  // namespace cuda

// A step that is the same sequence of ops every time. On the CPU run() calls it. On a GPU the first run
// executes it op by op (so that lazily created handles exist), the second captures it as one graph, and
// from then on run() replays that graph: one launch, no host work. What changes between steps (counters,
// learning rates, batches) must therefore live in device memory, not in arguments.
class CapturedStep {
 public:
  template <class Step>
  void run(Context& ctx, Step&& step) {
    if (!ctx.on_gpu()) {
      step();
      return;
    }
    if (replay(ctx)) return;
    begin(ctx);
    try {
      step();
    } catch (...) {
      abandon(ctx);
      throw;
    }
    end(ctx);
  }
  void reset() noexcept { graph_.reset(), runs_ = 0; }

 private:
  bool replay(Context& ctx);
  void begin(Context& ctx);
  void end(Context& ctx);
  void abandon(Context& ctx) noexcept;

  std::unique_ptr<cuda::Graph, cuda::GraphDeleter> graph_;
  int runs_ = 0;
};

}  // namespace pwdice
