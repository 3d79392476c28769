// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "episode_order.h"

#include <algorithm>
#include <numeric>

namespace pwdice {

EpisodeOrder order_episodes(const std::vector<int32_t>& step) {
  const size_t n = step.size();
  const size_t steps = n == 0 ? 0 : static_cast<size_t>(*std::max_element(step.begin(), step.end())) + 1;
  EpisodeOrder out{std::vector<int32_t>(n), std::vector<int32_t>(n), std::vector<int32_t>(steps + 1)};
  for (size_t i = n; i-- > 0;) {
    const bool followed = i + 1 < n && step[i + 1] > step[i];
    out.end[i] = followed ? out.end[i + 1] : static_cast<int32_t>(i + 1);
  }
  for (const int32_t t : step) ++out.step_begin[static_cast<size_t>(t) + 1];
  std::partial_sum(out.step_begin.begin(), out.step_begin.end(), out.step_begin.begin());
  std::iota(out.order.begin(), out.order.end(), 0);
  std::stable_sort(out.order.begin(), out.order.end(), [&](int32_t a, int32_t b) {
    return step[static_cast<size_t>(a)] < step[static_cast<size_t>(b)];
  });
  return out;
}

}  // namespace pwdice
