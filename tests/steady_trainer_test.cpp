// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// What the trainer's own steps ask of the machine: no allocation and no lock once they run.
#include "allocation_count.h"
#include "small_run.h"

namespace pwdice::test {
namespace {

// Each phase from its third step on: by then the arena has its blocks and every op its target. In the dual phase that
// is after the policy's first steps; passes that make its weights anew are among those counted.
TEST(SteadyTrainer, AStepAllocatesNothingAndLocksNothing) {
  if (!allocations_are_counted()) return;
  using Settings = std::vector<std::pair<const char*, const char*>>;
  for (const Settings& settings : {Settings{},
                                   {{"transport", "joint"}, {"dual.expert_batch", "32"}},
                                   {{"transport", "joint"}, {"divergence", "chi2"}, {"dual.regulariser", "0.1"}},
                                   {{"transport", "paired"}, {"dual.average", "0.99"}},
                                   {{"method", "smodice"}, {"policy.lookahead", "5"}, {"policy.balance", "steps"}},
                                   {{"method", "bc"}, {"policy.sampling", "uniform"}},
                                   {{"contrastive.metric", "learned_sphere"}, {"discriminator.mixing", "0.5"}}}) {
    const Config config = small_config(settings);
    SCOPED_TRACE(config.method + ", " + config.transport + ", " + config.contrastive.metric);
    Context ctx(ContextOptions{.threads = 2});
    Trainer trainer(ctx, config, small_mixture());
    int64_t counted = 0;
    while (trainer.phase() != Phase::Done) {
      const Phase phase = trainer.phase();
      const int64_t step = trainer.step() + 1, warm = phase == Phase::Dual ? config.policy.start + 2 : 2;
      const uint64_t heap = allocation_count(), locks = lock_count();
      trainer.advance(ctx);
      const uint64_t heap_after = allocation_count(), locks_after = lock_count();
      if (step <= warm || step == trainer.phase_steps(phase)) continue;  // the last builds what the next phase needs
      ASSERT_EQ(heap_after, heap) << name(phase) << ", step " << step;
      ASSERT_EQ(locks_after, locks) << name(phase) << ", step " << step;
      ++counted;
    }
    EXPECT_GE(counted, 20);
  }
}

}  // namespace
}  // namespace pwdice::test
