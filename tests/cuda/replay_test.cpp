// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// What training asks of the CUDA runtime.
#include <ptxcpu.h>

#include "../../kernels/capture.h"
#include "../train_steps.h"
#include "tiny_run.h"

namespace pwdice::test {
namespace {

// What waits for the device or makes the host a part of it.
class Calls {
 public:
  explicit Calls(std::vector<const char*> names) : names_(std::move(names)) {
    for (const char* call : names_) before_.push_back(ptxcpu_call_count(call));
  }
  void expect_none() const {
    for (size_t c = 0; c < names_.size(); ++c)
      EXPECT_EQ(ptxcpu_call_count(names_[c]), before_[c]) << names_[c];
  }

 private:
  std::vector<const char*> names_;
  std::vector<uint64_t> before_;
};

TEST(CudaReplay, AReplayedStepIsOneCall) {
  Context ctx({.backend = Backend::Cuda});
  for (const auto& step : all_train_steps(ctx, {})) {
    SCOPED_TRACE(step->optimiser().params().name());
    CapturedStep graph;
    const auto run = [&] { graph.run(ctx, [&] { step->run(); }); };
    for (int i = 0; i < 2; ++i) run();
    const Calls forbidden({"cudaMalloc", "cudaMallocAsync", "cudaFree", "cudaFreeAsync", "cudaMemcpy",
                           "cudaMemcpyAsync", "cudaMemsetAsync", "cudaStreamSynchronize",
                           "cudaDeviceSynchronize", "cudaLaunchKernel"});
    const uint64_t launches = ptxcpu_call_count("cudaGraphLaunch");
    for (int i = 0; i < 3; ++i) run();
    EXPECT_EQ(ptxcpu_call_count("cudaGraphLaunch"), launches + 3);
    forbidden.expect_none();
    EXPECT_EQ(step->optimiser().report(ctx).steps, 5);
  }
}

// Dual steps, policy steps and the passes that make the weights anew, as the profile pwdice shapes them.
TEST(CudaReplay, TrainingAsksNothingOfTheHost) {
  Context ctx({.backend = Backend::Cuda});
  Config config = tiny_config();
  for (const auto& [key, value] : {std::pair{"dual.steps", "8"},
                                   {"policy.lookahead", "5"},
                                   {"policy.power", "3"},
                                   {"policy.balance", "steps"}})
    set_value(config, key, value);
  Trainer trainer(ctx, config, tiny_mixture());
  while (trainer.phase() != Phase::Dual || trainer.step() < 4) trainer.advance(ctx);
  const std::vector<float> before = trainer.weights(ctx);
  {
    const Calls forbidden({"cudaMalloc", "cudaMallocAsync", "cudaFree", "cudaFreeAsync", "cudaMemcpy",
                           "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaDeviceSynchronize"});
    while (trainer.step() < 7) trainer.advance(ctx);  // with a pass after the sixth
    forbidden.expect_none();
  }
  EXPECT_NE(trainer.weights(ctx), before);
}

}  // namespace
}  // namespace pwdice::test
