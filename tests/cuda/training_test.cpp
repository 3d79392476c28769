// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The four training steps on both backends: the same draws, nearly the same losses.
#include <cmath>

#include "../train_steps.h"

namespace pwdice::test {
namespace {

// The widths of the paper would take minutes here; these use every kernel with ragged tiles.
const StepSizes kSizes{
    .batch = 96, .state = 11, .action = 3, .width = 40, .embedding = 32, .population = 500};

// FP32 on both sides: sums in another order, other elementary functions. 20 steps of Adam amplify that most
// where a gradient is all rounding, so losses are compared and not parameters.
constexpr double kTolerance = 2e-4;

TEST(CudaTraining, LossesFollowTheCpu) {
  Context cpu({.threads = 2}), gpu({.backend = Backend::Cuda});
  const auto host = all_train_steps(cpu, kSizes), device = all_train_steps(gpu, kSizes);
  for (size_t k = 0; k < host.size(); ++k) {
    SCOPED_TRACE(host[k]->optimiser().params().name());
    for (int i = 0; i < 20; ++i) {
      host[k]->run();
      device[k]->run();
      const auto want = host[k]->optimiser().report(cpu), got = device[k]->optimiser().report(gpu);
      ASSERT_NEAR(got.loss, want.loss, kTolerance * std::max(1.f, std::abs(want.loss))) << "step " << i;
      ASSERT_NEAR(got.gradient_norm, want.gradient_norm, 1e-3 * std::max(1.f, want.gradient_norm))
          << "step " << i;
    }
  }
}

}  // namespace
}  // namespace pwdice::test
