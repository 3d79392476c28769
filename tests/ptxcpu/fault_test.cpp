// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Every planted bug must be seen, named, and end as an error of the CUDA runtime; the correct
// kernel must pass every check in every order of threads and blocks.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "device_array.h"
#include "faults.h"
#include "ptxcpu.h"

namespace {

using faults::Bug;

constexpr int kBlocks = 4;
constexpr int kElements = kBlocks * faults::kThreads;

struct Outcome {
  cudaError_t error;
  std::string report;
};

class FaultTest : public testing::Test {
 protected:
  void SetUp() override {
    ptxcpu_reset();
    ptxcpu_set_order("forward", 1);
  }
  void TearDown() override {
    ptxcpu_set_check("block_races", 0);
    ptxcpu_set_check("global_init", 0);
    ptxcpu_set_order("forward", 1);
    ptxcpu_reset();
  }

  Outcome run(Bug bug) {
    const std::vector<float> input = random_floats(kElements);
    DeviceArray<float> x(input), y(kElements), sum(std::vector<float>{0}), scratch(1);
    faults::run(bug, x.get(), y.get(), sum.get(), scratch.get(), kElements, nullptr);
    const Outcome outcome{cudaDeviceSynchronize(), ptxcpu_last_report()};
    if (outcome.error == cudaSuccess) {
      EXPECT_EQ(y.download()[0], input[faults::kThreads - 1]);
      EXPECT_NEAR(sum.download()[0], std::accumulate(input.begin(), input.end(), 0.0), 1e-3);
    }
    ptxcpu_reset();
    return outcome;
  }

  // Every report says where: kernel, source line, block and thread.
  void expect(Bug bug, cudaError_t error, const std::string& words) {
    const Outcome outcome = run(bug);
    EXPECT_EQ(outcome.error, error) << outcome.report;
    EXPECT_NE(outcome.report.find(words), std::string::npos) << outcome.report;
    EXPECT_NE(outcome.report.find("reverse_and_sum"), std::string::npos) << outcome.report;
    EXPECT_NE(outcome.report.find("faults.cu:"), std::string::npos) << outcome.report;
    EXPECT_NE(outcome.report.find("block ("), std::string::npos) << outcome.report;
    EXPECT_NE(outcome.report.find("thread ("), std::string::npos) << outcome.report;
  }
};

TEST_F(FaultTest, CorrectKernelIsCleanInEveryOrder) {
  ptxcpu_set_check("global_init", 1);
  for (const char* order : {"forward", "reversed", "shuffled"}) {
    for (uint64_t seed : {1, 2, 3}) {
      ASSERT_EQ(ptxcpu_set_order(order, seed), 0);
      const Outcome outcome = run(Bug::kNone);
      EXPECT_EQ(outcome.error, cudaSuccess) << outcome.report;
    }
  }
}

TEST_F(FaultTest, ReadPastEnd) {
  expect(Bug::kReadPastEnd, cudaErrorIllegalAddress, "read of 4 bytes out of bounds");
}
TEST_F(FaultTest, WritePastEnd) {
  expect(Bug::kWritePastEnd, cudaErrorIllegalAddress, "write of 4 bytes out of bounds");
}
TEST_F(FaultTest, NullPointer) { expect(Bug::kNullPointer, cudaErrorIllegalAddress, "unallocated address"); }
TEST_F(FaultTest, Misaligned) { expect(Bug::kMisaligned, cudaErrorMisalignedAddress, "misaligned 16-byte"); }
TEST_F(FaultTest, MissingBarrier) { expect(Bug::kMissingBarrier, cudaErrorLaunchFailure, "shared memory"); }
TEST_F(FaultTest, MissingBarrierBeforeOverwrite) {
  expect(Bug::kMissingBarrierBefore, cudaErrorLaunchFailure, "shared memory race");
}
TEST_F(FaultTest, MissingSyncwarp) { expect(Bug::kMissingSyncwarp, cudaErrorLaunchFailure, "within a warp"); }
TEST_F(FaultTest, UninitializedShared) {
  expect(Bug::kUninitializedShared, cudaErrorLaunchFailure, "uninitialised shared memory");
}
TEST_F(FaultTest, SharedPastEnd) {
  expect(Bug::kSharedPastEnd, cudaErrorIllegalAddress, "shared memory access");
}
TEST_F(FaultTest, MissingAsyncWait) {
  expect(Bug::kMissingAsyncWait, cudaErrorLaunchFailure, "has not been waited for");
}
TEST_F(FaultTest, PartialShuffle) { expect(Bug::kPartialShuffle, cudaErrorLaunchTimeout, "deadlock"); }
TEST_F(FaultTest, ShuffleAfterExit) { expect(Bug::kShuffleAfterExit, cudaErrorLaunchFailure, "exited"); }
TEST_F(FaultTest, DivergentBarrier) {
  expect(Bug::kDivergentBarrier, cudaErrorLaunchFailure, "divergent barrier");
}
TEST_F(FaultTest, BarrierAfterExit) { expect(Bug::kBarrierAfterExit, cudaErrorLaunchFailure, "after exit"); }
TEST_F(FaultTest, Assert) { expect(Bug::kAssert, cudaErrorAssert, "i != 11"); }

TEST_F(FaultTest, RaceBetweenBlocks) {
  EXPECT_EQ(run(Bug::kBlocksRace).error, cudaSuccess) << "the check is off by default";
  ptxcpu_set_check("block_races", 1);
  EXPECT_EQ(run(Bug::kNone).error, cudaSuccess);
  expect(Bug::kBlocksRace, cudaErrorLaunchFailure, "race between blocks");
}

TEST_F(FaultTest, UninitializedGlobal) {
  ptxcpu_set_check("global_init", 1);
  expect(Bug::kUninitializedGlobal, cudaErrorLaunchFailure, "uninitialised global memory");
}

TEST_F(FaultTest, MissingBarrierIsSeenInEveryOrder) {
  for (const char* order : {"forward", "reversed", "shuffled"}) {
    ptxcpu_set_order(order, 7);
    EXPECT_EQ(run(Bug::kMissingBarrier).error, cudaErrorLaunchFailure) << order;
  }
}

TEST_F(FaultTest, EndlessWait) {
  ptxcpu_set_timeout(0.2);
  expect(Bug::kEndlessWait, cudaErrorLaunchTimeout, "poll memory");
  ptxcpu_set_timeout(60);
}

TEST_F(FaultTest, UseAfterFree) {
  const std::vector<float> input = random_floats(kElements);
  DeviceArray<float> y(kElements), sum(std::vector<float>{0}), scratch(1);
  float* x = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&x), kElements * sizeof(float)), cudaSuccess);
  ASSERT_EQ(cudaFree(x), cudaSuccess);
  faults::run(Bug::kNone, x, y.get(), sum.get(), scratch.get(), kElements, nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_NE(std::string(ptxcpu_last_report()).find("use after free"), std::string::npos);
  ptxcpu_reset();
}

TEST_F(FaultTest, ErrorsAreSticky) {
  const std::vector<float> input = random_floats(kElements);
  DeviceArray<float> x(input), y(kElements), sum(std::vector<float>{0}), scratch(1);
  faults::run(Bug::kReadPastEnd, x.get(), y.get(), sum.get(), scratch.get(), kElements, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "reading a sticky error does not clear it";
  EXPECT_EQ(ptxcpu_report_count(), 1u);
  ptxcpu_reset();
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
