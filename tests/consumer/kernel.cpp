// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// One fused kernel, called directly: a few steps of gradient descent on InfoNCE with plain arrays. The ops' own library
// is all it needs.
#include <cstdio>
#include <vector>

#include "kernels/infonce.h"

int main() {
  constexpr int64_t n = 64, d = 8;
  std::vector<float> v1, v2, w0(d * d, 0.5f), d_v1(n * d), d_v2(n * d), d_w0(d * d);
  for (int64_t i = 0; i < n * d; ++i) {
    v1.push_back(static_cast<float>(i * 7919 % 31) - 15);
    v2.push_back(static_cast<float>(i * 104729 % 37) - 18);
  }
  try {
    pwdice::Context ctx;  // all cores, and 64 MiB of scratch
    ctx.reserve_scratch(infonce_scratch_bytes(ctx, n, d));
    float first = 0, loss = 0;
    for (int step = 0; step < 200; ++step) {
      infonce_train(ctx, {{{v1.data(), n, d},
                           {v2.data(), n, d},
                           {w0.data(), d, d},
                           pwdice::ScoreMetric::SoftplusGram,
                           true,
                           1.f},
                          {&loss, 1},
                          {d_v1.data(), n, d},
                          {d_v2.data(), n, d},
                          {d_w0.data(), d, d}});
      if (step == 0) first = loss;
      for (size_t i = 0; i < v1.size(); ++i) v1[i] -= 3000 * d_v1[i], v2[i] -= 3000 * d_v2[i];
    }
    std::printf("loss %g -> %g\n", first, loss);
    return loss < 0.5f * first ? 0 : 1;
  } catch (const pwdice::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
