// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// What is left of a training when the device fails, and what it asks of the process it is a guest of.
#include <cuda_runtime_api.h>
#include <ptxcpu.h>

#include "../op_case.h"
#include "tiny_run.h"

namespace pwdice::test {
namespace {

class CudaTrainerFault : public testing::Test {
 protected:
  void SetUp() override { ptxcpu_reset(); }
  void TearDown() override { ptxcpu_reset(); }

  static std::string parameters(Context& ctx, const Trainer& trainer) {
    Checkpoint checkpoint;
    trainer.save(ctx, checkpoint);
    std::string all;
    for (const std::string& name : checkpoint.names()) {
      if (name.ends_with("/values")) all += checkpoint.get_text(name);
    }
    return all;
  }
};

// The first step launches each kernel itself, the second is captured, later ones are replayed: whichever
// launch fails, the parameters are those before the step, and the next step works.
TEST_F(CudaTrainerFault, FailedLaunchLeavesTheParameters) {
  Context ctx({.backend = Backend::Cuda});
  Trainer trainer(ctx, tiny_config(), tiny_mixture());
  int failures = 0;
  for (const char* call : {"cudaLaunchKernel", "cudaLaunchKernel", "cudaGraphLaunch"}) {
    for (const int nth : {1, 3, 20}) {
      const std::string before = parameters(ctx, trainer);
      ptxcpu_inject(call, nth, cudaErrorInvalidConfiguration);
      try {
        trainer.advance(ctx);
      } catch (const Error& error) {
        ++failures;
        EXPECT_EQ(parameters(ctx, trainer), before) << call << " " << nth << ": " << error.what();
      }
      ptxcpu_reset();
      if (std::string(call) == "cudaGraphLaunch") break;  // a step has one
    }
    EXPECT_NO_THROW(trainer.advance(ctx)) << "after " << call;
  }
  EXPECT_GE(failures, 4);
}

// A dual step is one launch for the potentials and one for each policy step: taken up where it failed, none of them
// is done twice.
TEST_F(CudaTrainerFault, AFailedDualStepIsTakenUpWhereItFailed) {
  Context ctx({.backend = Backend::Cuda});
  Trainer whole(ctx, tiny_config(), tiny_mixture()), broken(ctx, tiny_config(), tiny_mixture());
  const auto before_last = [&](const Trainer& t) { return t.phase() == Phase::Dual && t.step() == 3; };
  while (!before_last(whole)) whole.advance(ctx);
  while (!before_last(broken)) broken.advance(ctx);
  whole.advance(ctx);
  for (const int nth : {1, 2, 5}) {
    ptxcpu_inject("cudaGraphLaunch", nth, cudaErrorInvalidConfiguration);
    EXPECT_THROW(broken.advance(ctx), Error) << nth;
    ptxcpu_reset();
  }
  broken.advance(ctx);
  EXPECT_EQ(broken.phase(), Phase::Done);
  EXPECT_EQ(broken.policy_steps(), whole.policy_steps());
  EXPECT_EQ(parameters(ctx, broken), parameters(ctx, whole));
}

TEST_F(CudaTrainerFault, NoMemoryForTheTablesIsOneSentence) {
  Context ctx({.backend = Backend::Cuda});
  ptxcpu_inject("cudaMallocAsync", 1, cudaErrorMemoryAllocation);
  expect_error(ErrorCode::OutOfMemory, "allocate: ", [&] { Trainer(ctx, tiny_config(), tiny_mixture()); });
}

TEST_F(CudaTrainerFault, LostDeviceEndsTheRunWithOneSentence) {
  Context ctx({.backend = Backend::Cuda});
  Trainer trainer(ctx, tiny_config(), tiny_mixture());
  for (int i = 0; i < 2; ++i) trainer.advance(ctx);
  ptxcpu_inject("cudaGraphLaunch", 1, cudaErrorIllegalAddress);
  expect_error(ErrorCode::DeviceLost, "found the device lost", [&] { trainer.advance(ctx); });
  expect_error(ErrorCode::DeviceLost, "restart the process, or use the CPU backend",
               [&] { trainer.advance(ctx); });
}

// Our host may use another stream and device of its own: neither is touched.
TEST_F(CudaTrainerFault, NothingUsesTheDefaultStreamOrTheWholeDevice) {
  Context ctx({.backend = Backend::Cuda});
  Trainer trainer(ctx, tiny_config(), tiny_mixture());
  for (int i = 0; i < 3; ++i) trainer.advance(ctx);
  ctx.synchronise();
  EXPECT_EQ(ptxcpu_call_count("default stream"), 0u);
  for (const char* call :
       {"cudaDeviceSynchronize", "cudaDeviceReset", "cudaMemcpy", "cudaMemset", "cudaMalloc"}) {
    EXPECT_EQ(ptxcpu_call_count(call), 0u) << call;
  }
}

}  // namespace
}  // namespace pwdice::test
