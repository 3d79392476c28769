// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The four training steps once the first ones are over: nothing is allocated, no lock is taken, nothing is read
// back, and the parameters do not depend on the number of threads.
#include <limits>
#include <map>

#include "../kernels/capture.h"
#include "allocation_count.h"
#include "train_steps.h"

namespace pwdice::test {
namespace {

class SteadyState : public testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(, SteadyState, testing::ValuesIn(test_backends()), backend_name);

TEST_P(SteadyState, AStepAllocatesNothingLocksNothingAndReadsNothingBack) {
  Context ctx(ContextOptions{.backend = GetParam(), .threads = 2});
  for (const auto& step : all_train_steps(ctx, {})) {
    SCOPED_TRACE(step->optimiser().params().name());
    for (int i = 0; i < 2; ++i) step->run();
    const MemoryEvents before = memory_events();
    const uint64_t heap = allocation_count(), locks = lock_count();
    for (int i = 0; i < 5; ++i) step->run();
    const uint64_t heap_after = allocation_count(), locks_after = lock_count();
    // A CUDA driver's own bookkeeping is not ours to count.
    if (!ctx.on_gpu() && allocations_are_counted()) {
      EXPECT_EQ(heap_after, heap);
      EXPECT_EQ(locks_after, locks);
    }
    EXPECT_EQ(memory_events().allocations, before.allocations);
    EXPECT_EQ(memory_events().downloads, before.downloads);
  }
}

TEST_P(SteadyState, StepsLearn) {
  Context ctx(ContextOptions{.backend = GetParam(), .threads = 2});
  for (const auto& step : all_train_steps(ctx, {})) {
    SCOPED_TRACE(step->optimiser().params().name());
    const auto start = step->values();
    for (int i = 0; i < 3; ++i) step->run();
    EXPECT_NE(step->values(), start);
    EXPECT_EQ(step->optimiser().report(ctx).steps, 3);
    EXPECT_NO_THROW(step->optimiser().check(ctx));
  }
}

// On a GPU the third run and all later ones replay a graph.
TEST_P(SteadyState, CapturedStepsGiveTheSameBits) {
  Context ctx(ContextOptions{.backend = GetParam(), .threads = 2});
  const auto plain = all_train_steps(ctx, {}), captured = all_train_steps(ctx, {});
  for (size_t k = 0; k < plain.size(); ++k) {
    SCOPED_TRACE(plain[k]->optimiser().params().name());
    CapturedStep graph;
    for (int i = 0; i < 5; ++i) {
      plain[k]->run();
      graph.run(ctx, [&] { captured[k]->run(); });
    }
    EXPECT_EQ(captured[k]->values(), plain[k]->values());
    EXPECT_EQ(captured[k]->optimiser().report(ctx).steps, 5);
  }
}

// Large enough that every op cuts its work into several chunks.
TEST(SteadyStateCpu, SameBitsOnOneAndTwoThreads) {
  const StepSizes sizes{
      .batch = 256, .state = 11, .action = 3, .width = 256, .embedding = 32, .population = 3000};
  std::vector<std::vector<float>> values[3];
  const int threads[3] = {1, 2, 2};
  for (int k = 0; k < 3; ++k) {
    Context ctx(ContextOptions{.threads = threads[k]});
    for (const auto& step : all_train_steps(ctx, sizes)) {
      for (int i = 0; i < 20; ++i) step->run();
      values[k].push_back(step->values());
    }
  }
  for (size_t step = 0; step < values[0].size(); ++step) {
    EXPECT_EQ(values[0][step], values[1][step]) << "step " << step << ", 1 and 2 threads";
    EXPECT_EQ(values[1][step], values[2][step]) << "step " << step << ", twice on 2 threads";
  }
}

// On the CPU the first loss that meets the batch refuses; on a GPU, which is not read back, the optimiser does.
TEST_P(SteadyState, NanInABatchLeavesTheParameters) {
  Context ctx(ContextOptions{.backend = GetParam(), .threads = 2});
  const StepSizes sizes;
  const std::map<std::string, std::string> refusals = {
      {"discriminator", "gradient_penalty: x is nan in row 0, column 0"},
      {"encoder", "infonce_train: v1 is nan in row 0, column 0"},
      {"dual", "bellman: v is nan in row 0"},
      {"policy", "policy_nll_forward: head is nan in row 0, column 0"}};
  for (const auto& step : all_train_steps(ctx, sizes)) {
    SCOPED_TRACE(step->optimiser().params().name());
    step->run();
    const auto before = step->values();
    fill(ctx, step->data().view(), std::numeric_limits<float>::quiet_NaN());
    const std::string name = step->optimiser().params().name();
    expect_error(ErrorCode::NotFinite,
                 ctx.on_gpu() ? name + ": the loss or gradient of step" : refusals.at(name), [&] {
                   step->run();
                   step->optimiser().check(ctx);
                 });
    EXPECT_EQ(step->values(), before);
    upload(ctx, step->data().view(), normal(sizes.population * sizes.state, 30));
    step->run();  // the next good batch is taken
    EXPECT_NE(step->values(), before);
  }
}

}  // namespace
}  // namespace pwdice::test
