// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The four training steps on both backends: the same draws, nearly the same losses; and what a replayed step
// asks of the CUDA runtime.
#include <ptxcpu.h>

#include <cmath>

#include "../../kernels/capture.h"
#include "../train_steps.h"

namespace pwdice::test {
namespace {

// The widths of the paper would take minutes here; these use every kernel with ragged tiles.
const StepSizes kSizes{
    .batch = 96, .state = 11, .action = 3, .width = 40, .embedding = 32, .population = 500};

// FP32 on both sides: sums in another order, other elementary functions. 20 steps of Adam amplify that most
// where a gradient is all rounding, so losses are compared and not parameters.
constexpr double kTolerance = 2e-4;

TEST(CudaTraining, LossesFollowTheCpu) {
  Context cpu({.threads = 2}), gpu({.backend = Backend::Cuda});
  const auto host = all_train_steps(cpu, kSizes), device = all_train_steps(gpu, kSizes);
  for (size_t k = 0; k < host.size(); ++k) {
    SCOPED_TRACE(host[k]->optimiser().params().name());
    for (int i = 0; i < 20; ++i) {
      host[k]->run();
      device[k]->run();
      const auto want = host[k]->optimiser().report(cpu), got = device[k]->optimiser().report(gpu);
      ASSERT_NEAR(got.loss, want.loss, kTolerance * std::max(1.f, std::abs(want.loss))) << "step " << i;
      ASSERT_NEAR(got.gradient_norm, want.gradient_norm, 1e-3 * std::max(1.f, want.gradient_norm))
          << "step " << i;
    }
  }
}

TEST(CudaTraining, AReplayedStepIsOneCall) {
  Context ctx({.backend = Backend::Cuda});
  for (const auto& step : all_train_steps(ctx, {})) {
    SCOPED_TRACE(step->optimiser().params().name());
    CapturedStep graph;
    const auto run = [&] { graph.run(ctx, [&] { step->run(); }); };
    for (int i = 0; i < 2; ++i) run();
    const char* const forbidden[] = {"cudaMalloc",
                                     "cudaMallocAsync",
                                     "cudaFree",
                                     "cudaFreeAsync",
                                     "cudaMemcpy",
                                     "cudaMemcpyAsync",
                                     "cudaMemsetAsync",
                                     "cudaStreamSynchronize",
                                     "cudaDeviceSynchronize",
                                     "cudaLaunchKernel"};
    std::vector<uint64_t> before;
    for (const char* call : forbidden) before.push_back(ptxcpu_call_count(call));
    const uint64_t launches = ptxcpu_call_count("cudaGraphLaunch");
    for (int i = 0; i < 3; ++i) run();
    EXPECT_EQ(ptxcpu_call_count("cudaGraphLaunch"), launches + 3);
    for (size_t c = 0; c < before.size(); ++c)
      EXPECT_EQ(ptxcpu_call_count(forbidden[c]), before[c]) << forbidden[c];
    EXPECT_EQ(step->optimiser().report(ctx).steps, 5);
  }
}

}  // namespace
}  // namespace pwdice::test
