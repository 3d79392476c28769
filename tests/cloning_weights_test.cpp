// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/cloning_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "../kernels/episode_order.h"
#include "op_case.h"

namespace pwdice::test {
namespace {

TEST(EpisodeOrder, OfThreeEpisodes) {
  const EpisodeOrder order = order_episodes({0, 1, 2, 0, 0, 1});  // the second has one transition
  EXPECT_EQ(order.end, (std::vector<int32_t>{3, 3, 3, 4, 6, 6}));
  EXPECT_EQ(order.order, (std::vector<int32_t>{0, 3, 4, 1, 5, 2}));
  EXPECT_EQ(order.step_begin, (std::vector<int32_t>{0, 3, 5, 6}));
  EXPECT_EQ(order_episodes({}).step_begin, std::vector<int32_t>{0});
}

class CloningWeightsOp : public OpTest {
 protected:
  struct How {
    int64_t lookahead = 1;
    float power = 1;
    bool balanced = false;
    float cap = 0.97f;
  };

  std::vector<float> shaped(const How& how, const std::vector<int32_t>& step, const std::vector<float>& w) {
    const EpisodeOrder episodes = order_episodes(step);
    return run(cloning_weights_scratch_bytes(static_cast<int64_t>(step.size())), [&](OpRun& op) {
      cloning_weights(op.ctx, {how.lookahead, how.power, how.balanced, how.cap, op.in(episodes.end),
                               op.in(episodes.order), op.in(episodes.step_begin), op.in_out("w", w)});
    })["w"];
  }

  // The definition, with sorted weights and everything in T.
  template <class T>
  static std::vector<T> reference(const How& how, const std::vector<int32_t>& step,
                                  const std::vector<float>& w) {
    const size_t n = w.size();
    std::vector<T> mean(n), v(n);
    std::vector<std::vector<size_t>> members(1);
    if (n > 0 && how.balanced) members.resize(*std::max_element(step.begin(), step.end()) + 1);
    for (size_t i = 0; i < n; ++i) {
      members[how.balanced ? step[i] : 0].push_back(i);
      size_t end = i + 1;
      while (end < n && end < i + how.lookahead && step[end] > step[end - 1]) ++end;
      T sum = 0;
      bool any = false;
      for (size_t j = i; j < end; ++j) {
        sum += std::log(std::max<T>(w[j], std::numeric_limits<float>::min()));
        any = any || w[j] > 0;
      }
      mean[i] = any ? sum / static_cast<T>(end - i) : -std::numeric_limits<T>::infinity();
    }
    for (const auto& group : members) {
      T top = -std::numeric_limits<T>::infinity();
      for (const size_t i : group) top = std::max(top, mean[i]);
      for (const size_t i : group) v[i] = std::isinf(top) ? 0 : std::exp(how.power * (mean[i] - top));
      if (how.balanced) balance(how.cap, group, v);
    }
    const T largest = n == 0 ? 0 : *std::max_element(v.begin(), v.end());
    for (T& value : v) value = largest == 0 ? 1 : value / largest;
    return v;
  }

 private:
  template <class T>
  static void balance(float cap, const std::vector<size_t>& group, std::vector<T>& v) {
    std::vector<T> sorted;
    for (const size_t i : group) sorted.push_back(v[i]);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    const T mass = std::accumulate(sorted.begin(), sorted.end(), T(0));
    if (mass == 0) return;
    T above = 0, most = sorted.front(), total = 0;
    for (size_t k = 0; k < sorted.size() && above < cap * mass; ++k) above += most = sorted[k];
    for (const size_t i : group) total += v[i] = std::min(v[i], most);
    for (const size_t i : group) v[i] /= total;
  }
};
INSTANTIATE_TEST_SUITE_P(, CloningWeightsOp, testing::ValuesIn(test_backends()), backend_name);

// Two episodes of three steps.
const std::vector<int32_t> kSteps = {0, 1, 2, 0, 1, 2};

TEST_P(CloningWeightsOp, MatchesTheDefinition) {
  // Episodes of 1, 2, .. 40 steps and their like: few transitions in late steps, many in early ones.
  for (const int64_t n : {0, 1, 7, 1025, 3001}) {
    std::vector<int32_t> step;
    for (int32_t length = 1; static_cast<int64_t>(step.size()) < n; length = length % 40 + 1) {
      for (int32_t t = 0; t < length && static_cast<int64_t>(step.size()) < n; ++t) step.push_back(t);
    }
    std::vector<float> w = normal(n, 5);
    for (float& v : w) v = std::exp(8 * v - 20);  // from 1e-22 to 1e5
    for (size_t i = 0; i < w.size(); i += 11) w[i] = 0;
    for (const How& how : {How{1, 1, false}, How{1, 3, true, 0.97f}, How{40, 3, true, 0.97f},
                           How{5, 2, false}, How{1000, 1, true, 0.999f}, How{3, 1, true, 0.f}}) {
      SCOPED_TRACE(std::to_string(n) + " transitions, lookahead " + std::to_string(how.lookahead));
      expect_within(shaped(how, step, w), reference<double>(how, step, w), 1e-4);
    }
  }
}

TEST_P(CloningWeightsOp, NothingIsChangedUnlessAsked) {
  const std::vector<float> w = {0.1f, 0.2f, 0.3f, 0.f, 1.f, 0.5f};
  EXPECT_EQ(shaped({}, kSteps, w), w);
}

TEST_P(CloningWeightsOp, EveryStepGetsTheSameMassAndKeepsItsRatios) {
  const std::vector<float> w =
      shaped({.balanced = true, .cap = 0}, kSteps, {0.01f, 0.2f, 0.6f, 0.03f, 0.6f, 0.2f});
  for (size_t t = 0; t < 3; ++t) EXPECT_NEAR(w[t] + w[t + 3], w[0] + w[3], 1e-6);
  EXPECT_NEAR(w[3] / w[0], 3, 1e-4);
  EXPECT_NEAR(w[1] / w[4], 1.0 / 3, 1e-5);
  EXPECT_EQ(*std::max_element(w.begin(), w.end()), 1.f);
}

TEST_P(CloningWeightsOp, APowerSharpens) {
  const std::vector<float> w = shaped({.power = 2}, kSteps, {0.1f, 0.2f, 0.5f, 0.2f, 0.2f, 1.f});
  EXPECT_NEAR(w[0], 0.01, 1e-7);
  EXPECT_NEAR(w[2], 0.25, 1e-6);
  EXPECT_EQ(w[5], 1.f);
}

// The geometric mean of what follows in the same episode, never of the next one.
TEST_P(CloningWeightsOp, LookingAheadStaysInTheEpisode) {
  const std::vector<float> w = shaped({.lookahead = 2}, kSteps, {0.04f, 0.16f, 0.64f, 0.01f, 1.f, 1.f});
  expect_within(w, {std::sqrt(0.04 * 0.16), std::sqrt(0.16 * 0.64), 0.64, std::sqrt(0.01), 1, 1}, 1e-6);
  const std::vector<float> far = shaped({.lookahead = 1000}, kSteps, {0.5f, 0.5f, 0.5f, 1.f, 1.f, 1.f});
  expect_within(far, {0.5, 0.5, 0.5, 1, 1, 1}, 1e-6);
}

// One step, masses 8, 1, 0.5, 0.5: nine tenths lie at or above 1, so that 8 counts as 1.
TEST_P(CloningWeightsOp, AFewTransitionsDoNotStandForAll) {
  expect_within(shaped({.balanced = true, .cap = 0.88f}, {0, 0, 0, 0}, {0.8f, 0.1f, 0.05f, 0.05f}),
                {1, 1, 0.5, 0.5}, 1e-5);
}

TEST_P(CloningWeightsOp, AStepWithoutWeightStaysWithout) {
  const std::vector<float> some = {0.f, 1.f, 1.f, 0.f, 1.f, 1.f};
  EXPECT_EQ(shaped({.power = 3, .balanced = true}, kSteps, some), some);
  // The zeros before a weight count as small, not as nothing.
  const std::vector<float> later = shaped({.lookahead = 3}, kSteps, {0.f, 0.f, 0.5f, 0.f, 0.f, 0.f});
  EXPECT_GT(later[0], 0.f);
  EXPECT_EQ(later[2], 1.f);
  EXPECT_EQ(later[3], 0.f);
}

// A step whose weights are all tiny beside another step's keeps their ratios.
TEST_P(CloningWeightsOp, TinyStepsAreBalancedToo) {
  const std::vector<float> w =
      shaped({.power = 3, .balanced = true, .cap = 0}, kSteps, {1.f, 1e-20f, 1.f, 1.f, 2e-20f, 1.f});
  EXPECT_NEAR(w[4] / w[1], 8, 1e-3);
  EXPECT_NEAR(w[1] + w[4], w[0] + w[3], 1e-6);
}

TEST_P(CloningWeightsOp, WithoutAnyWeightAllCountAlike) {
  const std::vector<float> nothing(6, 0.f), alike(6, 1.f);
  EXPECT_EQ(shaped({}, kSteps, nothing), alike);
  EXPECT_EQ(shaped({.lookahead = 3, .power = 2, .balanced = true}, kSteps, nothing), alike);
}

TEST_P(CloningWeightsOp, NanIsNotLost) {
  std::vector<float> w(6, 0.5f);
  w[4] = std::numeric_limits<float>::quiet_NaN();
  for (const How& how : {How{}, How{.power = 2}, How{.lookahead = 3, .power = 3, .balanced = true}}) {
    if (GetParam() == Backend::Cpu) {
      expect_error(ErrorCode::NotFinite, "cloning_weights: w is nan in row 4",
                   [&] { shaped(how, kSteps, w); });
    } else {  // a GPU is not read back
      for (const float v : shaped(how, kSteps, w)) EXPECT_TRUE(std::isnan(v));
    }
  }
}

// Three episodes of two steps; on a GPU nothing looks at what is in them.
TEST(CloningWeightsCpu, BadContentsAreAnErrorAndLeaveTheWeights) {
  Context ctx;
  using Indices = std::vector<int32_t>;
  const auto refuse = [&](ErrorCode code, const std::string& part, const Indices& end, const Indices& order,
                          const Indices& step_begin, const std::vector<float>& w) {
    std::vector<float> weights = w;
    expect_error(code, "cloning_weights: " + part, [&] {
      OpRun op(ctx, 0);
      cloning_weights(ctx, {2, 1, true, 1, op.in(end), op.in(order), op.in(step_begin), {weights.data(), 6}});
    });
    EXPECT_EQ(std::memcmp(weights.data(), w.data(), w.size() * sizeof(float)), 0) << part;
  };
  const Indices end{2, 2, 4, 4, 6, 6}, order{0, 2, 4, 1, 3, 5}, begin{0, 3, 6};
  const std::vector<float> w(6, 0.5f);
  const auto bad = ErrorCode::InvalidArgument;
  refuse(bad, "end is 7 in row 4, expected 5 to 6", {2, 2, 4, 4, 7, 6}, order, begin, w);
  refuse(bad, "end is 1 in row 1, expected 2 to 6", {2, 1, 4, 4, 6, 6}, order, begin, w);
  refuse(bad, "order is 6 in row 1, expected 0 to 5", end, {0, 6, 4, 1, 3, 5}, begin, w);
  refuse(bad, "order is -1 in row 5, expected 0 to 5", end, {0, 2, 4, 1, 3, -1}, begin, w);
  refuse(bad, "order has transition 2 twice", end, {0, 2, 2, 1, 3, 5}, begin, w);
  refuse(bad, "step_begin runs from 1 to 6, expected 0 to 6", end, order, {1, 3, 6}, w);
  refuse(bad, "step_begin runs from 0 to 7, expected 0 to 6", end, order, {0, 3, 7}, w);
  refuse(bad, "step_begin falls from 7 to 6 after step 1", end, order, {0, 7, 6}, w);
  refuse(bad, "w is -1 in row 3, expected a weight of at least 0", end, order, begin, {0, 0, 0, -1, 0, 0});
  refuse(ErrorCode::NotFinite, "w is inf in row 3", end, order, begin, {0, 0, 0, INFINITY, 0, 0});
}

TEST_P(CloningWeightsOp, BadOptionsAreAnError) {
  const std::vector<float> w(6, 1.f);
  const auto refuse = [&](const std::string& part, const How& how, int64_t ends) {
    expect_error(ErrorCode::InvalidArgument, part, [&] {
      OpRun op(context(), 0);
      cloning_weights(op.ctx, {how.lookahead,
                               how.power,
                               how.balanced,
                               how.cap,
                               op.in(std::vector<int32_t>(ends)),
                               {},
                               {},
                               op.in_out("w", w)});
    });
  };
  refuse("cloning_weights: looks 0 transitions ahead", {.lookahead = 0}, 6);
  refuse("cloning_weights: power is -1", {.power = -1}, 6);
  refuse("cloning_weights: power is inf", {.power = INFINITY}, 6);
  refuse("cloning_weights: cap is 2", {.cap = 2}, 6);
  refuse("cloning_weights: end has 5 values, expected 6", {.lookahead = 2}, 5);
  refuse("cloning_weights: order has 0 values, expected 6", {.balanced = true}, 6);
}

}  // namespace
}  // namespace pwdice::test
