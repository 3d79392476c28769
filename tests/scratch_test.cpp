// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Every op of the CPU backend that borrows scratch: with enough of it no allocation and no lock, with none one sentence
// that names the op, and outputs that nobody touched.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "../kernels/adam.h"
#include "../kernels/bce.h"
#include "../kernels/bellman.h"
#include "../kernels/cloning_weights.h"
#include "../kernels/gradient_penalty.h"
#include "../kernels/infonce.h"
#include "../kernels/linear.h"
#include "../kernels/matmul.h"
#include "../kernels/mlp.h"
#include "../kernels/policy_nll.h"
#include "../kernels/reduce.h"
#include "../kernels/scan.h"
#include "../kernels/transport.h"
#include "allocation_count.h"

namespace pwdice::test {
namespace {

// Several chunks on two threads, so that the pool takes part. Outputs are `out`, inputs everything else.
class ScratchOps : public testing::Test {
 protected:
  static constexpr int64_t kRows = 1300, kCols = 32, kSize = kRows * kCols, kOutputs = 8;
  static constexpr float kUntouched = 42.f;
  using Op = std::function<void(Context&)>;

  void check(const std::string& name, const Op& op) {
    SCOPED_TRACE(name);
    op(enough_);  // the first call may choose the SIMD target
    const uint64_t allocations = allocation_count(), locks = lock_count();
    for (int i = 0; i < 3; ++i) op(enough_);
    EXPECT_EQ(allocation_count() - allocations, 0u);
    EXPECT_EQ(lock_count() - locks, 0u);
    for (auto& values : out_) values.assign(kSize, kUntouched);
    sums_.assign(kSize, kUntouched);
    try {
      op(none_);
      ADD_FAILURE() << "needs no scratch";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::OutOfMemory);
      EXPECT_EQ(std::string(error.what()).rfind(name + ": needs ", 0), 0u) << error.what();
    }
    for (const auto& values : out_) EXPECT_EQ(values, std::vector<float>(kSize, kUntouched));
    EXPECT_EQ(sums_, std::vector<double>(kSize, kUntouched));
    EXPECT_EQ(none_.scratch().used(), 0u);
  }

  Vec<const float> in(int64_t size = kRows) const { return {in_.data(), size}; }
  Mat<const float> in(int64_t rows, int64_t cols) const { return {in_.data(), rows, cols}; }
  Vec<float> out(size_t k, int64_t size = kRows) { return {out_[k].data(), size}; }
  Mat<float> out(size_t k, int64_t rows, int64_t cols) { return {out_[k].data(), rows, cols}; }
  Vec<const float> weights() const { return {weights_.data(), kRows}; }
  PairCost cost() const { return {Distance::SquaredEuclidean, 1.f, in(kRows, 8), in(kRows, 8), in()}; }
  InfoNce scores() const {
    return {in(kRows, kCols), in(kRows, kCols), in(kCols, kCols), ScoreMetric::SoftplusGram, true, 1.f};
  }

  std::vector<float> in_ = std::vector<float>(kSize, 0.5f), weights_ = std::vector<float>(kRows, 1.f / kRows);
  std::array<std::vector<float>, kOutputs> out_{std::vector<float>(kSize), std::vector<float>(kSize),
                                                std::vector<float>(kSize), std::vector<float>(kSize),
                                                std::vector<float>(kSize), std::vector<float>(kSize),
                                                std::vector<float>(kSize), std::vector<float>(kSize)};
  std::vector<double> sums_ = std::vector<double>(kSize);

 private:
  Context enough_{{.threads = 2}}, none_{{.threads = 2, .scratch_bytes = 0}};
};

TEST_F(ScratchOps, Reductions) {
  check("reduce_sum", [&](Context& c) { reduce_sum(c, {in(kSize), out(0, 1)}); });
  check("reduce_mean", [&](Context& c) { reduce_mean(c, {in(kSize), out(0, 1)}); });
  check("reduce_max", [&](Context& c) { reduce_max(c, {in(kSize), out(0, 1)}); });
  check("reduce_logsumexp", [&](Context& c) { reduce_logsumexp(c, {in(kSize), out(0, 1)}); });
  check("dot", [&](Context& c) { dot(c, {in(kSize), in(kSize), out(0, 1)}); });
  check("all_finite", [&](Context& c) { all_finite(c, {in(kSize), out(0, 1)}); });
  check("reduce_norm", [&](Context& c) { reduce_norm(c, {in(kSize), out(0, 1)}); });
  check("clip_scale", [&](Context& c) { clip_scale(c, {in(kSize), 1.f, out(0, 1), out(1, 1)}); });
  check("column_sum", [&](Context& c) { column_sum(c, {in(kRows, kCols), out(0, kCols)}); });
  check("column_moments", [&](Context& c) {
    column_moments(c, {in(kRows, kCols), true, out(0, kCols), out(1, kCols)});
  });
  check("cumulative_sum", [&](Context& c) { cumulative_sum(c, {in(kSize), {sums_.data(), kSize}}); });
  const float p[] = {0.1f, 0.9f};
  check("quantiles", [&](Context& c) { quantiles(c, {in(kSize), {p, 2}, out(0, 2)}); });
}

TEST_F(ScratchOps, Products) {
  const Mat<const float> x = in(kRows, kCols), w = in(kCols, kCols);
  check("matmul", [&](Context& c) { matmul(c, {x, w, false, true, out(0, kRows, kCols)}); });
  check("linear_forward", [&](Context& c) {
    linear_forward(c, {x, w, in(kCols), Activation::Tanh, out(0, kRows, kCols)});
  });
  check("linear_backward_input", [&](Context& c) {
    linear_backward_input(c, {x, w, x, Activation::Tanh, out(0, kRows, kCols)});
  });
  check("linear_backward_params", [&](Context& c) {
    linear_backward_params(c, {x, x, out(0, kCols, kCols), out(1, kCols)});
  });
}

TEST_F(ScratchOps, Networks) {
  const Mat<const float> x = in(kRows, kCols), w = in(kCols, kCols);
  const std::array<MlpLayer, 2> layers{MlpLayer{w, in(kCols), Activation::Relu, out(0, kRows, kCols)},
                                       {w, in(kCols), Activation::None, out(1, kRows, kCols)}};
  const std::array<MlpGradient, 2> gradients{MlpGradient{out(2, kCols, kCols), out(3, kCols)},
                                             {out(4, kCols, kCols), out(5, kCols)}};
  check("mlp_forward", [&](Context& c) { mlp_forward(c, {x, layers}); });
  check("mlp_backward", [&](Context& c) { mlp_backward(c, {x, layers, x, gradients, {}}); });
  check("gradient_penalty", [&](Context& c) {
    gradient_penalty(
        c, {x, w, w, in(kCols), in(kCols), in(kCols), Activation::Tanh, 10.f, out(0), out(1, 1),
            out(2, kCols, kCols), out(3, kCols, kCols), out(4, kCols), out(5, kCols), out(6, kCols)});
  });
}

TEST_F(ScratchOps, Scores) {
  check("infonce_forward", [&](Context& c) { infonce_forward(c, {scores(), out(0), out(1, 1)}); });
  std::vector<float> lse(kRows), loss(1);
  Context ctx;
  infonce_forward(ctx, {scores(), {lse.data(), kRows}, {loss.data(), 1}});
  check("infonce_backward", [&](Context& c) {
    infonce_backward(c, {scores(),
                         {lse.data(), kRows},
                         in(1),
                         out(0, kRows, kCols),
                         out(1, kRows, kCols),
                         out(2, kCols, kCols)});
  });
  check("infonce_train", [&](Context& c) {
    infonce_train(c, {scores(), out(0, 1), out(1, kRows, kCols), out(2, kRows, kCols), out(3, kCols, kCols)});
  });
}

TEST_F(ScratchOps, Pairs) {
  constexpr int64_t kExperts = 32;
  PairCost few = cost();
  few.y = in(kExperts, 8);
  check("cost_matrix", [&](Context& c) { cost_matrix(c, {few, out(0, kRows, kExperts)}); });
  check("transport_joint", [&](Context& c) {
    transport_joint(c, {cost(), in(), in(), weights(), 0.5f, out(0, 1), out(1), out(2)});
  });
  check("transport_semidual", [&](Context& c) {
    transport_semidual(c, {cost(), in(), weights(), 0.5f, out(0, 1), out(1), out(2)});
  });
  check("transport_chi2", [&](Context& c) {
    transport_chi2(c, {cost(), in(), in(), weights(), 0.5f, Divergence::Chi2, out(0, 1), out(1), out(2)});
  });
  check("transport_paired", [&](Context& c) {
    transport_paired(c, {cost(), in(), in(), 0.5f, Divergence::Kl, out(0, 1), out(1), out(2)});
  });
  check("column_lse", [&](Context& c) { column_lse(c, {cost(), in(), 0.5f, out(0)}); });
}

TEST_F(ScratchOps, Losses) {
  check("bce_forward", [&](Context& c) { bce_forward(c, {in(kSize), kSize / 2, out(0, 1)}); });
  check("policy_nll_forward", [&](Context& c) {
    policy_nll_forward(c, {in(kRows, 6), in(kRows, 3), in(), out(0), out(1, 1)});
  });
  check("bellman", [&](Context& c) {
    bellman(c, {in(), in(), in(), in(), in(), 0.1f, 0.5f, Divergence::Kl, out(0, 1), out(1), out(2), out(3),
                out(4)});
  });
  check("cloning_weights", [&](Context& c) {
    cloning_weights(c, {.power = 2, .end = {}, .order = {}, .step_begin = {}, .w = out(0)});
  });
  check("policy_weights", [&](Context& c) { policy_weights(c, {in(), Divergence::Kl, out(0)}); });
}

}  // namespace
}  // namespace pwdice::test
