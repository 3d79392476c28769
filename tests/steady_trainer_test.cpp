// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// What the trainer's own steps ask of the machine: no allocation and no lock once they run, and how much memory.
#include "allocation_count.h"
#include "small_run.h"

namespace pwdice::test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

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
                                   {{"contrastive.metric", "learned_spd_normalised"}, {"discriminator.mixing", "0.5"}}}) {
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

// Transitions in a row, made up.
Mixture long_mixture(int64_t transitions, int64_t dim) {
  Mixture m;
  Transitions& t = m.offline;
  t.state_dim = dim, t.action_dim = 1;
  t.states = normal((transitions + 1) * dim, 1);
  for (int64_t i = 0; i < transitions; ++i) {
    t.next.push_back(static_cast<int32_t>(i + 1));
    t.step.push_back(static_cast<int32_t>(i));
  }
  const auto n = static_cast<size_t>(transitions);
  t.actions.assign(n, 0.f), t.done.assign(n, 0), t.source.assign(n, 0);
  m.expert.state_dim = dim;
  m.expert.states = normal(50 * dim, 2);
  m.expert.weight.assign(50, 1.f / 50);
  m.state_map.normalizer = Normalizer::identity(dim);
  return m;
}

// The score matrix alone would be 64 MiB.
TEST(SteadyTrainer, TheContrastiveStepOf4096StaysUnder40MiB) {
  if (!allocations_are_counted()) return;
  Context ctx({.threads = 2});
  const DataTables data(ctx, long_mixture(5000, 27), 0.99);
  const uint64_t before = allocated_bytes();
  Encoder encoder(ctx, data, {.batch = 4096}, 1);
  for (int step = 0; step < 3; ++step) encoder.step(ctx);
  const uint64_t owned = allocated_bytes() - before, scratch = ctx.scratch().peak();
  EXPECT_GT(owned, 2 * 4096 * 128 * sizeof(float));  // the activations are among them
  EXPECT_GT(scratch, 0u);
  EXPECT_LT(owned + scratch, 40 * kMiB) << owned << " bytes of its own, " << scratch << " of scratch";
}

// The op behind the exact objective. Beside the network's scratch its own would not show in the test below.
TEST(SteadyTrainer, AColumnPassOverMoreRowsNeedsNoMoreScratch) {
  constexpr int64_t kExperts = 200, kDim = 8;
  const auto peak = [](int64_t n) {
    Context ctx({.threads = 2});
    const std::vector<float> x = normal(n * kDim, 1), y = normal(kExperts * kDim, 2), zeros(static_cast<size_t>(n), 0.f);
    std::vector<float> lse(kExperts);
    const PairCost cost{Distance::SquaredEuclidean, 1.f, {x.data(), n, kDim}, {y.data(), kExperts, kDim}, {zeros.data(), n}};
    column_lse(ctx, {cost, {zeros.data(), n}, 0.5f, {lse.data(), kExperts}});
    return ctx.scratch().peak();
  };
  // Rows that make 32 sections on every target, whether its blocks have 24 or 28 rows.
  constexpr int64_t kRows = 32 * 24 * 7;
  static_assert(kRows % (32 * 28) == 0);
  const size_t small = peak(4 * kRows);
  EXPECT_GT(small, 0u);
  EXPECT_EQ(peak(20 * kRows), small);
}

struct Memory {
  size_t scratch;
  uint64_t heap;
};

Memory of_objective(const PotentialsOptions& options, int64_t transitions) {
  constexpr int64_t kDim = 5, kPart = 1024;
  Context ctx({.threads = 2});
  const DataTables data(ctx, long_mixture(transitions, kDim), 0.99);
  const std::vector<float> reward(static_cast<size_t>(transitions) + 1, 0.f);
  const CostTables tables{data.states(), data.expert_states(), {reward.data(), transitions + 1}};
  const Potentials potentials(ctx, data, tables, options, 1);
  const uint64_t before = allocated_bytes();
  potentials.objective(ctx, kPart);
  return {ctx.scratch().peak(), allocated_bytes() - before};
}

// What a call adds to the heads and columns that the potentials keep: one number per transition (y, for KL) and the
// copies of the parts' results.
TEST(SteadyTrainer, TheExactObjectiveNeedsOneNumberForATransitionMore) {
  constexpr int64_t kSmall = 4096, kLarge = 4 * kSmall, kParts = (kLarge - kSmall) / 1024;
  PotentialsOptions kl, chi2;
  kl.method = DualMethod::Semidual;
  chi2.method = DualMethod::Joint, chi2.divergence = Divergence::Chi2;
  for (const PotentialsOptions& options : {kl, chi2}) {
    const Memory small = of_objective(options, kSmall), large = of_objective(options, kLarge);
    EXPECT_GT(small.scratch, 0u);
    EXPECT_EQ(large.scratch, small.scratch);
    if (!allocations_are_counted()) continue;
    const int64_t y = options.divergence == Divergence::Kl ? kLarge - kSmall : 0;
    EXPECT_LE(large.heap - small.heap, static_cast<uint64_t>(y + kParts * 50) * sizeof(float));
  }
}

}  // namespace
}  // namespace pwdice::test
