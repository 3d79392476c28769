// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../context.h"
#include "hwy/highway.h"

namespace pwdice {

// Highway numbers its targets so that a better one has a lower bit.
const char* cpu_target() {
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  if (usable == 0) {
    fail(ErrorCode::Unsupported, "cpu: this processor lacks even {}, the least this build of pwdice can use",
         hwy::TargetName(HWY_STATIC_TARGET));
  }
  return hwy::TargetName(usable & -usable);
}

}  // namespace pwdice
