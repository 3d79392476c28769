// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// A state that is drawn several times passes through the network once. Whether it does depends on how many states there
// are to draw from, so the same states in many copies, drawn by the same random numbers, must train the same network.
#include "../models/potentials.h"

#include <gtest/gtest.h>

#include "op_case.h"

namespace pwdice::test {
namespace {

constexpr int64_t kTransitions = 24, kExperts = 6, kDim = 3, kFeatures = 2, kEpisode = 5;

// Every state `copies` times, a power of two, one beside the other.
struct Copied {
  std::vector<float> features, expert_features, reward;
  DataTables data;

  Copied(Context& ctx, int64_t copies) : data(ctx, mixture(copies), 0.9) {
    features = repeat(normal((kTransitions + 1) * kFeatures, 3), kFeatures, copies);
    expert_features = repeat(normal(kExperts * kFeatures, 4), kFeatures, copies);
    reward = repeat(normal(kTransitions + 1, 5), 1, copies);
  }
  CostTables tables() const {
    const auto rows = static_cast<int64_t>(reward.size());
    return {{features.data(), rows, kFeatures},
            {expert_features.data(), static_cast<int64_t>(expert_features.size()) / kFeatures, kFeatures},
            {reward.data(), rows}};
  }

  static std::vector<float> repeat(const std::vector<float>& rows, int64_t width, int64_t copies) {
    std::vector<float> out;
    for (auto row = rows.begin(); row != rows.end(); row += width) {
      for (int64_t c = 0; c < copies; ++c) out.insert(out.end(), row, row + width);
    }
    return out;
  }
  static Mixture mixture(int64_t copies) {
    Mixture m;
    Transitions& t = m.offline;
    t.state_dim = kDim, t.action_dim = 1;
    t.states = repeat(normal((kTransitions + 1) * kDim, 1), kDim, copies);
    for (int64_t i = 0; i < kTransitions * copies; ++i) {
      t.next.push_back(static_cast<int32_t>((i / copies + 1) * copies));
      t.step.push_back(static_cast<int32_t>(i / copies % kEpisode));
    }
    const auto n = static_cast<size_t>(kTransitions * copies);
    t.actions.assign(n, 0.f), t.done.assign(n, 0), t.source.assign(n, 0);
    m.expert.state_dim = kDim;
    m.expert.states = repeat(normal(kExperts * kDim, 2), kDim, copies);
    for (int64_t j = 0; j < kExperts; ++j) {
      const float weight = static_cast<float>(j + 1) / 21 / static_cast<float>(copies);
      m.expert.weight.insert(m.expert.weight.end(), static_cast<size_t>(copies), weight);
    }
    m.state_map.normalizer = Normalizer::identity(kDim);
    return m;
  }
};

struct Case {
  const char* name;
  PotentialsOptions options;
};

std::vector<float> losses(Context& ctx, const PotentialsOptions& options, int64_t copies) {
  const Copied copied(ctx, copies);
  Potentials potentials(ctx, copied.data, copied.tables(), options, 11);
  std::vector<float> out;
  for (int step = 0; step < 8; ++step) {
    potentials.step(ctx);
    out.push_back(potentials.optimiser().report(ctx).loss);
  }
  return out;
}

TEST(Potentials, AStateDrawnTwiceCountsTwice) {
  Context ctx({.threads = 2});
  PotentialsOptions base;
  base.batch = 16, base.expert_batch = 16, base.init_batch = 12, base.regulariser = 0.1f;
  base.adam.learning_rate = 1e-2f;
  const auto with = [&](auto change) {
    PotentialsOptions options = base;
    change(options);
    return options;
  };
  const Case cases[] = {
      {"paired", with([](PotentialsOptions& o) { o.method = DualMethod::Paired; })},
      {"joint", with([](PotentialsOptions& o) { o.method = DualMethod::Joint, o.shared = false; })},
      {"joint, shared", with([](PotentialsOptions& o) { o.method = DualMethod::Joint; })},
      {"joint, chi2", with([](PotentialsOptions& o) {
         o.method = DualMethod::Joint, o.shared = false, o.divergence = Divergence::Chi2;
       })},
      {"semidual", with([](PotentialsOptions& o) { o.method = DualMethod::Semidual; })},
      {"smodice", with([](PotentialsOptions& o) { o.method = DualMethod::Smodice; })},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::vector<float> once = losses(ctx, c.options, 1), copied = losses(ctx, c.options, 16);
    for (size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(once[i], copied[i], 2e-5f * (1 + std::abs(once[i])));
    EXPECT_NE(once.front(), once.back());  // it trains
  }
}

}  // namespace
}  // namespace pwdice::test
