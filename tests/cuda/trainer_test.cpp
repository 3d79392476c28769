// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The trainer as a user runs it, data tables, draws and passes over the data included, on both backends.
#include <cmath>

#include "../op_case.h"
#include "tiny_run.h"

namespace pwdice::test {
namespace {

template <class T>
std::vector<T> of(Context& ctx, Vec<const T> values) {
  std::vector<T> host(static_cast<size_t>(values.size));
  download(ctx, host.data(), values.data, host.size() * sizeof(T));
  return host;
}
std::vector<float> of(Context& ctx, Mat<const float> m) {
  return of(ctx, Vec<const float>{m.data, m.rows * m.stride});
}

TEST(CudaTrainer, TablesOnTheDeviceAreThoseOfTheHost) {
  Context cpu({.threads = 1}), gpu({.backend = Backend::Cuda});
  const DataTables host(cpu, tiny_mixture(), 0.9), device(gpu, tiny_mixture(), 0.9);
  EXPECT_NE(device.states().data, host.states().data);
  EXPECT_EQ(of(gpu, device.states()), of(cpu, host.states()));
  EXPECT_EQ(of(gpu, device.actions()), of(cpu, host.actions()));
  EXPECT_EQ(of(gpu, device.next()), of(cpu, host.next()));
  EXPECT_EQ(of(gpu, device.live()), of(cpu, host.live()));
  EXPECT_EQ(of(gpu, device.discount()), of(cpu, host.discount()));
  EXPECT_EQ(of(gpu, device.initial_states()), of(cpu, host.initial_states()));
  EXPECT_EQ(of(gpu, device.expert_states()), of(cpu, host.expert_states()));
  EXPECT_EQ(of(gpu, device.expert_weight()), of(cpu, host.expert_weight()));
  EXPECT_EQ(of(gpu, device.expert_cumulative()), of(cpu, host.expert_cumulative()));
  EXPECT_EQ(device.bytes(), host.bytes());
}

TEST(CudaTrainer, AStepOnTheOtherBackendIsRefused) {
  Context cpu({.threads = 1}), gpu({.backend = Backend::Cuda});
  Trainer trainer(gpu, tiny_config(), tiny_mixture());
  expect_error(ErrorCode::InvalidArgument, "step: encoder is in the memory of CUDA device 0, the Context runs on the CPU",
               [&] { trainer.advance(cpu); });
  EXPECT_NO_THROW(trainer.advance(gpu));
}

// FP32 on both sides: sums in another order, other elementary functions.
TEST(CudaTrainer, LossesAndWeightsFollowTheCpu) {
  Context cpu({.threads = 2}), gpu({.backend = Backend::Cuda});
  Trainer host(cpu, tiny_config(), tiny_mixture()), device(gpu, tiny_config(), tiny_mixture());
  while (host.phase() != Phase::Done) {
    const Phase phase = host.phase();
    ASSERT_EQ(device.phase(), phase);
    host.advance(cpu);
    device.advance(gpu);
    const auto want = host.losses(cpu, phase), got = device.losses(gpu, phase);
    SCOPED_TRACE(std::string(name(phase)) + ", step " + std::to_string(host.step()));
    ASSERT_NEAR(got.main.loss, want.main.loss, 2e-4 * std::max(1.f, std::abs(want.main.loss)));
    ASSERT_EQ(got.policy.has_value(), want.policy.has_value());
    if (want.policy) {
      ASSERT_NEAR(got.policy->loss, want.policy->loss, 2e-4 * std::max(1.f, std::abs(want.policy->loss)));
    }
  }
  EXPECT_EQ(device.phase(), Phase::Done);
  EXPECT_EQ(device.policy_steps(), host.policy_steps());
  expect_within(device.weights(gpu), to(host.weights(cpu)), 1e-3);
}

// The exact objective, in one part and in several; the second with the metric that is made of functions of the tape.
TEST(CudaTrainer, ObjectivesFollowTheCpu) {
  using Settings = std::vector<std::pair<const char*, const char*>>;
  for (const Settings& settings : {Settings{{"transport", "semidual"}},
                                   {{"transport", "joint"}, {"divergence", "chi2_exact"},
                                    {"contrastive.metric", "learned_spd_normalised"}}}) {
    Config config = tiny_config();
    for (const auto& [key, value] : settings) set_value(config, key, value);
    SCOPED_TRACE(config.divergence);
    Context cpu({.threads = 2}), gpu({.backend = Backend::Cuda});
    Trainer host(cpu, config, tiny_mixture()), device(gpu, config, tiny_mixture());
    while (host.phase() != Phase::Done) host.advance(cpu), device.advance(gpu);
    const double want = host.objective(cpu);
    EXPECT_NEAR(device.objective(gpu), want, 2e-4 * (1 + std::abs(want)));
    EXPECT_NEAR(device.objective(gpu, 100), want, 2e-4 * (1 + std::abs(want)));
  }
}

// A replayed step cannot throw: the guard in device memory keeps the parameters, and check() tells.
TEST(CudaTrainer, ALossThatIsNotFiniteIsReported) {
  Context gpu({.backend = Backend::Cuda});
  Config config = tiny_config();
  set_value(config, "contrastive.lr", "1e38");
  Trainer trainer(gpu, config, tiny_mixture());
  trainer.check(gpu);
  for (int i = 0; i < 3; ++i) trainer.advance(gpu);
  expect_error(ErrorCode::NotFinite, "contrastive phase, in or before step 3: ", [&] { trainer.check(gpu); });
}

// A weight pass cannot throw either; check() tells, once.
TEST(CudaTrainer, WeightsOfNobodyAreReported) {
  Context gpu({.backend = Backend::Cuda});
  Mixture mixture = tiny_mixture(AbsorbingRule::PwDice);
  std::fill(mixture.offline.done.begin(), mixture.offline.done.end(), 1);  // only ends: nobody is left
  Config config = tiny_config();
  set_value(config, "cost.distance", "none");  // a metric needs transitions that go on
  Trainer trainer(gpu, config, std::move(mixture));
  while (!trainer.has_weights()) trainer.advance(gpu);
  expect_error(ErrorCode::NotFinite, "the largest weight of the policy is not a positive finite number",
               [&] { trainer.check(gpu); });
  EXPECT_NO_THROW(trainer.check(gpu));  // told once
}

}  // namespace
}  // namespace pwdice::test
