// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "capture.h"

#include "backends.h"

namespace pwdice {

bool CapturedStep::replay(Context& ctx) {
  if (!graph_) return false;
  cuda::launch(ctx.cuda(), *graph_);
  return true;
}

void CapturedStep::begin(Context& ctx) {
  if (runs_ == 0) return;
  cuda::begin_capture(ctx.cuda());
  ctx.scratch_was_captured_ = true;
}

void CapturedStep::end(Context& ctx) {
  if (runs_++ == 0) return;  // the first run was not captured
  graph_.reset(cuda::end_capture(ctx.cuda()));
  cuda::launch(ctx.cuda(), *graph_);
}

void CapturedStep::abandon(Context& ctx) noexcept {
  if (runs_ > 0) cuda::abandon_capture(ctx.cuda());
}

}  // namespace pwdice
