// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// No op of the CPU backend allocates or takes a lock: what it needs beyond its arguments is scratch, taken from the
// Context. Here ops that borrow none; the others in scratch_test.cpp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "../kernels/adam.h"
#include "../kernels/bce.h"
#include "../kernels/elementwise.h"
#include "../kernels/gather.h"
#include "../kernels/policy_nll.h"
#include "../kernels/row_norm.h"
#include "../kernels/sample.h"
#include "allocation_count.h"

namespace pwdice::test {
namespace {

// Keeps the compiler from leaving out an allocation nobody looks at.
void* used(void* memory) {
  asm volatile("" : : "r"(memory) : "memory");
  return memory;
}

TEST(AllocationCount, SeesEveryKindOfRequest) {
  if (!allocations_are_counted()) return;
  const uint64_t before = allocation_count();
  delete static_cast<int*>(used(new int(1)));
  std::free(used(std::malloc(10)));
  std::free(used(std::aligned_alloc(256, 1024)));
  void* block = used(std::calloc(4, 4));
  std::free(used(std::realloc(block, 1 << 20)));
  EXPECT_EQ(allocation_count() - before, 5u);
}

TEST(AllocationCount, SumsTheBytesAskedFor) {
  if (!allocations_are_counted()) return;
  const uint64_t before = allocated_bytes();
  std::free(used(std::malloc(10)));
  std::free(used(std::aligned_alloc(256, 1024)));
  std::free(used(std::calloc(3, 5)));
  EXPECT_EQ(allocated_bytes() - before, 10u + 1024u + 15u);
}

TEST(LockCount, SeesEveryKindOfLock) {
  if (!allocations_are_counted()) return;
  std::mutex mutex;
  std::shared_mutex shared;
  const uint64_t before = lock_count();
  { const std::lock_guard lock(mutex); }
  if (mutex.try_lock()) mutex.unlock();
  { const std::shared_lock lock(shared); }
  { const std::unique_lock lock(shared); }
  EXPECT_EQ(lock_count() - before, 4u);
}

// Several chunks on two threads, so that the pool takes part.
class NoAllocation : public testing::Test {
 protected:
  static constexpr int64_t kRows = 3000, kCols = 32, kSize = kRows * kCols;

  template <class Op>
  void expect_none(const char* name, Op&& op) {
    op();  // the first call may choose the SIMD target
    const uint64_t before = allocation_count(), locks_before = lock_count();
    for (int i = 0; i < 3; ++i) op();
    EXPECT_EQ(allocation_count() - before, 0u) << name << " allocates";
    EXPECT_EQ(lock_count() - locks_before, 0u) << name << " takes a lock";
  }

  Mat<float> mat(std::vector<float>& values) { return {values.data(), kRows, kCols}; }
  Vec<float> vec(std::vector<float>& values) { return {values.data(), kSize}; }
  Vec<float> rows(std::vector<float>& values) { return {values.data(), kRows}; }
  Vec<float> one(std::vector<float>& values) { return {values.data(), 1}; }

  Context ctx{{.threads = 2}};
  std::vector<float> x = std::vector<float>(kSize, 0.5f), y = x, z = x, v = x, scalar = {1.f};
  std::vector<int32_t> index = std::vector<int32_t>(kRows, 3);
  uint64_t counter = 0;
};

TEST_F(NoAllocation, Elementwise) {
  expect_none("unary_map", [&] { unary_map(ctx, {Unary::Tanh, vec(x), vec(y)}); });
  expect_none("binary_map", [&] { binary_map(ctx, {Binary::Add, vec(x), vec(y), vec(z)}); });
  expect_none("accumulate", [&] { accumulate(ctx, {vec(x), 0.5f, vec(y)}); });
  expect_none("mix_rows", [&] { mix_rows(ctx, {mat(x), mat(y), rows(x), mat(z)}); });
}

TEST_F(NoAllocation, Batches) {
  const RandomStream stream{1, 2};
  const Vec<int32_t> draws{index.data(), kRows};
  expect_none("sample_uniform", [&] { sample_uniform(ctx, {stream, {&counter, 1}, kRows, draws}); });
  expect_none("sample_shuffled", [&] { sample_shuffled(ctx, {stream, {&counter, 1}, kRows, draws}); });
  expect_none("gather_rows", [&] { gather_rows(ctx, {mat(x), draws, mat(y)}); });
}

TEST_F(NoAllocation, LossesAndOptimiser) {
  const Mat<float> head{x.data(), kRows, 6}, action{y.data(), kRows, 3}, d_head{z.data(), kRows, 6};
  int64_t t = 0;
  expect_none("bce_backward", [&] { bce_backward(ctx, {vec(x), kSize / 2, one(scalar), vec(y)}); });
  std::fill(y.begin(), y.end(), 0.5f);
  expect_none("policy_nll_backward", [&] {
    policy_nll_backward(ctx, {head, action, rows(v), one(scalar), d_head});
  });
  expect_none("row_norm_forward", [&] { row_norm_forward(ctx, {mat(x), mat(y), rows(z)}); });
  expect_none("adam", [&] {
    adam(ctx, {0.9f,
               0.999f,
               1e-8f,
               0.f,
               one(scalar),
               one(scalar),
               one(scalar),
               {&t, 1},
               vec(x),
               vec(y),
               vec(z),
               vec(v)});
  });
}

}  // namespace
}  // namespace pwdice::test
