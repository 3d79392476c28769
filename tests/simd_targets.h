// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace pwdice::test {

// No better target than the first of `targets` while this lives; 0: all there are.
class BestTarget {
 public:
  explicit BestTarget(int64_t targets) { choose(targets); }
  ~BestTarget() { choose(0); }

 private:
  static void choose(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// Runs body() on every SIMD target that this CPU has, not only the best one. Code that was not built for a target runs
// on the next one that it was built for.
template <class Body>
void on_every_target(const Body& body) {
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    SCOPED_TRACE(hwy::TargetName(targets & -targets));
    const BestTarget best(targets);
    body();
  }
}

}  // namespace pwdice::test
