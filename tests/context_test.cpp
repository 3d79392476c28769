// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/context.h"

#include <cmath>

#include "../kernels/capture.h"
#include "../kernels/finite.h"
#include "../kernels/memory.h"
#include "op_case.h"
#include "simd_targets.h"

namespace pwdice::test {
namespace {

TEST(Context, UsesAllCoresByDefaultAndAsManyThreadsAsAsked) {
  EXPECT_GE(Context().threads(), 1);
  EXPECT_EQ(Context({.threads = 3}).threads(), 3);
}

TEST(Context, RefusesSillyThreadCounts) {
  for (int threads : {-1, 1025}) {
    expect_error(ErrorCode::InvalidArgument, "context: threads is " + std::to_string(threads),
                 [&] { Context ctx({.threads = threads}); });
  }
}

TEST(Context, RefusesChoicesThatAreNone) {
  const auto expect = [](const std::string& part, const ContextOptions& options) {
    expect_error(ErrorCode::InvalidArgument, part, [&] { Context ctx(options); });
  };
  expect("context: backend is 7, expected 0 to 1", {.backend = static_cast<Backend>(7)});
  expect("context: score_precision is 9, expected 0 to 2",
         {.score_precision = static_cast<ScorePrecision>(9)});
  expect("context: gemm is -1, expected 0 to 1", {.gemm = static_cast<GemmLibrary>(-1)});
}

TEST(Context, CudaBackendExplainsItsAbsence) {
  const CudaAvailability cuda = cuda_availability();
  if (cuda.available) {
    EXPECT_TRUE(Context({.backend = Backend::Cuda}).on_gpu());
  } else {
    EXPECT_FALSE(cuda.reason.empty());
    expect_error(ErrorCode::Unsupported, "CUDA", [] { Context ctx({.backend = Backend::Cuda}); });
  }
}

class ContextOf : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, ContextOf, testing::ValuesIn(test_backends()), backend_name);

// ptxcpu pretends both sides of the limit.
TEST_P(ContextOf, TensorCoresNeedComputeCapability80) {
  if (GetParam() == Backend::Cpu) return;
  const std::string device = cuda_availability().reason;
  for (ScorePrecision precision : {ScorePrecision::Tf32, ScorePrecision::Bf16}) {
    const auto make = [&] { Context ctx({.backend = Backend::Cuda, .score_precision = precision}); };
    if (device.find("compute capability 7.") == std::string::npos) {
      EXPECT_NO_THROW(make());
    } else {
      expect_error(ErrorCode::Unsupported,
                   "context: TF32 and BF16 scores need compute capability 8.0, device 0 has 7.", make);
    }
  }
}

TEST(Context, NamesTheSimdTarget) { EXPECT_STRNE(cpu_target(), ""); }

// A processor whose only target is one the library is never built for.
TEST(Context, AProcessorWithoutAnyTargetIsRefused) {
  const BestTarget none(HWY_EMU128);
  expect_error(ErrorCode::Unsupported, "cpu: this processor lacks even ",
               [] { Context ctx({.threads = 1}); });
}

TEST(Scratch, IsAlignedAndGivenBackInReverseOrder) {
  Context ctx({.threads = 1, .scratch_bytes = 4096});
  Scratch& scratch = ctx.scratch();
  EXPECT_EQ(scratch.capacity(), 4096u);
  {
    ScratchScope outer(scratch);
    float* a = scratch.take<float>(1, "test");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % Scratch::kAlign, 0u);
    EXPECT_EQ(scratch.used(), Scratch::kAlign);
    {
      ScratchScope inner(scratch);
      EXPECT_NE(scratch.take<float>(100, "test"), a);
      EXPECT_EQ(scratch.used(), 3 * Scratch::kAlign);
    }
    EXPECT_EQ(scratch.used(), Scratch::kAlign);
  }
  EXPECT_EQ(scratch.used(), 0u);
  EXPECT_EQ(scratch.peak(), 3 * Scratch::kAlign);
}

TEST(Scratch, SaysWhoNeededHowMuch) {
  Context ctx({.threads = 1, .scratch_bytes = 1024});
  ScratchScope scope(ctx.scratch());
  ctx.scratch().take<float>(10, "first");
  expect_error(ErrorCode::OutOfMemory,
               "second: needs 1024 bytes of scratch on top of 256 in use, the Context has 1024",
               [&] { ctx.scratch().take<float>(256, "second"); });
  EXPECT_EQ(ctx.scratch().used(), 256u);
}

TEST_P(ContextOf, ScratchGrowsBetweenOpsUntilAStepIsCaptured) {
  Context ctx({.backend = GetParam(), .threads = 1, .scratch_bytes = 1024});
  ctx.reserve_scratch(512);
  EXPECT_EQ(ctx.scratch().capacity(), 1024u);
  ctx.reserve_scratch(5000);
  EXPECT_EQ(ctx.scratch().capacity(), Scratch::rounded(5000));
  {
    ScratchScope scope(ctx.scratch());
    ctx.scratch().take<float>(1250, "test");
    expect_error(ErrorCode::InvalidArgument, "reserve_scratch: an op is using 5120 bytes of scratch",
                 [&] { ctx.reserve_scratch(6000); });
  }
  const size_t peak = ctx.scratch().peak();
  ctx.reserve_scratch(7000);
  EXPECT_EQ(ctx.scratch().peak(), peak);
  expect_error(ErrorCode::OutOfMemory, "allocate: ", [&] { ctx.reserve_scratch(SIZE_MAX); });
  EXPECT_EQ(ctx.scratch().capacity(), Scratch::rounded(7000));
  if (GetParam() == Backend::Cpu) return;
  CapturedStep step;
  void* const memory = allocate(ctx, 64);
  for (int i = 0; i < 2; ++i) step.run(ctx, [&] { fill(ctx, {static_cast<float*>(memory), 16}, 1.f); });
  release(ctx, memory);
  expect_error(ErrorCode::InvalidArgument, "reserve_scratch: a step has been captured with the 7168 bytes",
               [&] { ctx.reserve_scratch(8000); });
}

TEST(Memory, CountsAllocationsAndDownloads) {
  Context ctx({.threads = 1});
  const MemoryEvents before = memory_events();
  void* memory = allocate(ctx, 16);
  const uint64_t word = 42;
  uint64_t back = 0;
  upload(ctx, memory, &word, sizeof word);
  copy_bytes(ctx, static_cast<char*>(memory) + 8, memory, 8);
  download(ctx, &back, static_cast<char*>(memory) + 8, sizeof back);
  EXPECT_EQ(back, 42u);
  fill_zero(ctx, memory, 16);
  download(ctx, &back, memory, sizeof back);
  EXPECT_EQ(back, 0u);
  release(ctx, memory);
  EXPECT_EQ(memory_events().allocations - before.allocations, 1u);
  EXPECT_EQ(memory_events().downloads - before.downloads, 2u);
}

TEST(Memory, EmptyRequestsAreFine) {
  Context ctx({.threads = 1});
  void* memory = allocate(ctx, 0);
  EXPECT_NE(memory, nullptr);
  upload(ctx, memory, nullptr, 0);
  copy_bytes(ctx, memory, nullptr, 0);
  fill(ctx, {nullptr, 0}, 1.f);
  release(ctx, memory);
  release(ctx, nullptr);
}

TEST(Memory, AnImpossibleRequestIsOutOfMemory) {
  Context ctx({.threads = 1});
  expect_error(ErrorCode::OutOfMemory, "allocate:", [&] { release(ctx, allocate(ctx, size_t{1} << 62)); });
}

TEST(CapturedStep, RunsEveryTimeOnTheCpu) {
  Context ctx({.threads = 1});
  CapturedStep step;
  int runs = 0;
  for (int i = 0; i < 4; ++i) step.run(ctx, [&] { ++runs; });
  EXPECT_EQ(runs, 4);
  EXPECT_THROW(step.run(ctx, [] { fail(ErrorCode::NotFinite, "stop"); }), Error);
}

TEST(CheckLoss, NamesTheFirstBadValueOnlyWhenTheLossIsBad) {
  Context ctx({.threads = 1});
  const float nan = NAN, one = 1.f;
  const float values[] = {0.f, 1.f, 2.f, INFINITY, 4.f, 5.f}, fine[] = {1.f, 2.f};
  const NamedTensor x{"x", Mat<const float>{values, 3, 2}}, y{"y", Vec<const float>{fine, 2}};
  const NamedTensor z{"z", Vec<const float>{values, 6}};
  const auto bad = ErrorCode::NotFinite;
  EXPECT_NO_THROW(check_loss(ctx, "op", {&one, 1}, {x}));
  expect_error(bad, "op: x is inf in row 1, column 1", [&] { check_loss(ctx, "op", {&nan, 1}, {y, x, z}); });
  expect_error(bad, "op: z is inf in row 3", [&] { check_loss(ctx, "op", {&nan, 1}, {y, z}); });
  expect_error(bad, "op: the loss is nan although every input is finite", [&] {
    check_loss(ctx, "op", {&nan, 1}, {y});
  });
}

}  // namespace
}  // namespace pwdice::test
