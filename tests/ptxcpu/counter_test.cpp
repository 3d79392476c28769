// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Counters of patterns whose cost can be told by hand.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "device_array.h"
#include "kernels.h"
#include "ptxcpu.h"

namespace {

using kernels::Pattern;

class CounterTest : public testing::Test {
 protected:
  void SetUp() override {
    ptxcpu_reset();
    ptxcpu_counters_reset();
  }
};

// The counted site with the given opcode prefix that was executed once: the pattern's own load.
PtxcpuSite single_site(const std::string& prefix) {
  PtxcpuSite result{};
  for (size_t i = 0; i < ptxcpu_site_count(0); ++i) {
    PtxcpuSite site;
    EXPECT_EQ(ptxcpu_site(0, i, &site), 0);
    if (std::string(site.opcode).rfind(prefix, 0) == 0 && site.global_requests + site.shared_requests == 1)
      result = site;
  }
  EXPECT_NE(result.opcode, nullptr) << "no single " << prefix;
  return result;
}

PtxcpuSite run(Pattern pattern, const std::string& prefix) {
  DeviceArray<float> in(random_floats(2048)), out(32);
  kernels::access_pattern(pattern, in.get(), out.get(), nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ptxcpu_last_report();
  return single_site(prefix);
}

TEST_F(CounterTest, CoalescedLoadTouchesFourSectors) {
  const PtxcpuSite site = run(Pattern::kCoalesced, "ld.global");
  EXPECT_EQ(site.global_bytes, 128u);
  EXPECT_EQ(site.sectors, 4u);
  EXPECT_EQ(site.ideal_sectors, 4u);
  EXPECT_NE(std::string(site.file).find("operations.cu"), std::string::npos);
  EXPECT_GT(site.line, 0u);
}
TEST_F(CounterTest, StridedLoadTouchesASectorPerLane) {
  const PtxcpuSite site = run(Pattern::kStrided, "ld.global");
  EXPECT_EQ(site.sectors, 32u);
  EXPECT_EQ(site.ideal_sectors, 4u);
}
TEST_F(CounterTest, BroadcastTouchesOneSector) {
  const PtxcpuSite site = run(Pattern::kBroadcast, "ld.global");
  EXPECT_EQ(site.sectors, 1u);
  EXPECT_EQ(site.ideal_sectors, 1u);
}
TEST_F(CounterTest, VectorLoadTouchesSixteenSectors) {
  const PtxcpuSite site = run(Pattern::kVector4, "ld.global");
  EXPECT_EQ(site.global_bytes, 512u);
  EXPECT_EQ(site.sectors, 16u);
  EXPECT_EQ(site.ideal_sectors, 16u);
}

struct SharedCase {
  Pattern pattern;
  uint64_t wavefronts, ideal;
};
class SharedCounterTest : public CounterTest, public testing::WithParamInterface<SharedCase> {};
INSTANTIATE_TEST_SUITE_P(Patterns, SharedCounterTest,
                         testing::Values(SharedCase{Pattern::kConflictFree, 1, 1},
                                         SharedCase{Pattern::kTwoWay, 2, 1},
                                         SharedCase{Pattern::kSixteenWay, 16, 1},
                                         SharedCase{Pattern::kPadded, 1, 1},
                                         SharedCase{Pattern::kVectorShared, 4, 4}));
TEST_P(SharedCounterTest, Wavefronts) {
  const PtxcpuSite site = run(GetParam().pattern, "ld.shared");
  EXPECT_EQ(site.shared_requests, 1u);
  EXPECT_EQ(site.wavefronts, GetParam().wavefronts);
  EXPECT_EQ(site.ideal_wavefronts, GetParam().ideal);
}

TEST_F(CounterTest, LdmatrixConflicts) {
  for (const bool padded : {false, true}) {
    ptxcpu_counters_reset();
    DeviceArray<uint32_t> out(32);
    kernels::ldmatrix_pattern(padded, out.get(), nullptr);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ptxcpu_last_report();
    const PtxcpuSite site = single_site("ldmatrix");
    EXPECT_EQ(site.ideal_wavefronts, 4u);
    EXPECT_EQ(site.wavefronts, padded ? 4u : 16u);
  }
}

TEST_F(CounterTest, InstructionMix) {
  constexpr int kRows = 128, kColumns = 64;
  DeviceArray<float> q(random_floats(kRows * kernels::kWidth)), k(random_floats(kColumns * kernels::kWidth)),
      lse(kRows);
  kernels::row_lse(q.get(), k.get(), lse.get(), kRows, kColumns, 1.0f, nullptr);
  kernels::row_lse(q.get(), k.get(), lse.get(), kRows, kColumns, 1.0f, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ptxcpu_last_report();
  ASSERT_EQ(ptxcpu_kernel_count(), 1u);
  EXPECT_NE(std::string(ptxcpu_kernel_name(0)).find("row_lse_kernel"), std::string::npos);
  EXPECT_EQ(ptxcpu_kernel_launches(0), 2u);
  constexpr uint64_t kScores = 2ull * kRows * kColumns;
  EXPECT_GE(ptxcpu_instructions(0, "fma"), kScores * kernels::kWidth);
  EXPECT_LT(ptxcpu_instructions(0, "fma"), kScores * (kernels::kWidth + 4));
  EXPECT_EQ(ptxcpu_instructions(0, "mufu.ex2"), 2 * kScores);
  EXPECT_EQ(ptxcpu_instructions(0, "barrier"), 2u * 2 * kRows);
  EXPECT_EQ(ptxcpu_instructions(0, "load.shared"), kScores * kernels::kWidth);
  EXPECT_EQ(ptxcpu_instructions(0, "store.global"), 2u * kRows);
  EXPECT_EQ(ptxcpu_instructions(0, "no such class"), 0u);
}

TEST_F(CounterTest, CountsNothingWhenSwitchedOff) {
  DeviceArray<float> x(random_floats(128)), y(random_floats(128));
  ptxcpu_set_counting(0);
  kernels::saxpy(128, 2.0f, x.get(), y.get(), nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(ptxcpu_kernel_count(), 0u);
  ptxcpu_set_counting(1);
  kernels::saxpy(128, 2.0f, x.get(), y.get(), nullptr);
  EXPECT_EQ(ptxcpu_kernel_count(), 1u);
}

TEST_F(CounterTest, ExecutesOnlyTheFirstBlocks) {
  constexpr int kRows = 256, kColumns = 64;  // two blocks
  DeviceArray<float> q(random_floats(kRows * kernels::kWidth)), k(random_floats(kColumns * kernels::kWidth)),
      lse(kRows);
  uint64_t executed[2];
  for (const uint32_t limit : {0u, 1u}) {
    ptxcpu_counters_reset();
    ptxcpu_set_block_limit(limit);
    kernels::row_lse(q.get(), k.get(), lse.get(), kRows, kColumns, 1.0f, nullptr);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ptxcpu_last_report();
    executed[limit] = ptxcpu_instructions(0, "fma");
  }
  ptxcpu_set_block_limit(0);
  EXPECT_EQ(executed[0], 2 * executed[1]);
}

TEST_F(CounterTest, MatrixInstructionsByShape) {
  DeviceArray<float> a(random_floats(16 * 32)), b(random_floats(8 * 32)), c(16 * 8);
  kernels::mma_tf32(a.get(), b.get(), c.get(), 32, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ptxcpu_last_report();
  EXPECT_EQ(ptxcpu_instructions(0, "mma.m16n8k8.tf32"), 32u * 4) << "one per lane and step of 8";
}

TEST_F(CounterTest, WritesJson) {
  run(Pattern::kStrided, "ld.global");
  const std::string path = testing::TempDir() + "ptxcpu_counters.json";
  ASSERT_EQ(ptxcpu_counters_write(path.c_str()), 0);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  EXPECT_NE(text.str().find("\"sectors\": 32"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("\"kernel\": "), std::string::npos);
  EXPECT_EQ(ptxcpu_counters_write("/no/such/directory/file"), -1);
}

}  // namespace
