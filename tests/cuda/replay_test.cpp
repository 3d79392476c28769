// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// What a replayed training step asks of the CUDA runtime.
#include <ptxcpu.h>

#include "../../kernels/capture.h"
#include "../train_steps.h"

namespace pwdice::test {
namespace {

TEST(CudaReplay, AReplayedStepIsOneCall) {
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
