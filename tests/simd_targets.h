// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace pwdice::test {

// The only targets there are from now on; 0: all that the CPU has.
inline void choose_targets(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// The same while this lives.
class BestTarget {
 public:
  explicit BestTarget(int64_t targets) : before_(hwy::SupportedTargets()) { choose_targets(targets); }
  ~BestTarget() { choose_targets(before_); }
  BestTarget(const BestTarget&) = delete;
  BestTarget& operator=(const BestTarget&) = delete;

 private:
  int64_t before_;
};

// Runs body() on every SIMD target that this CPU has, not only the best one. Code that was not built for a target runs
// on the next one that it was built for; newer versions of Highway end their list with one that nothing is built for.
template <class Body>
void on_every_target(const Body& body) {
  for (int64_t targets = hwy::SupportedTargets(); (targets & HWY_TARGETS) != 0; targets &= targets - 1) {
    SCOPED_TRACE(hwy::TargetName(targets & -targets));
    const BestTarget best(targets);
    body();
  }
}

}  // namespace pwdice::test
