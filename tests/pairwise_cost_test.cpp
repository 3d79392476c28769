// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/pairwise_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "op_case.h"
#include "pair_reference.h"

namespace pwdice::test {
namespace {

class PairwiseCost : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, PairwiseCost, testing::ValuesIn(test_backends()), backend_name);

using reference::Matrix;

struct Case {
  int64_t n, m, d;
  Distance distance;
  std::vector<float> x, y, reward;
  float beta = 1.5f;

  Case(int64_t rows, int64_t cols, int64_t width, Distance dist, Data data = Data::Normal)
      : n(rows), m(cols), d(width), distance(dist) {
    x = make_data(data, n * d, 1), y = make_data(data, m * d, 2), reward = normal(n, 3);
    for (int64_t j = 0; j < std::min(n, m); j += 3) {  // some equal states, for the indicator
      std::copy_n(x.begin() + j * d, d, y.begin() + j * d);
    }
  }
  PairCost cost(OpRun& op) const {
    return {distance, beta, op.in(x, n, d, d + 1), op.in(y, m, d, d + 2), op.in(reward)};
  }
  template <class T>
  Matrix<T> expected() const {
    return reference::cost_matrix(distance, static_cast<T>(beta), Matrix<T>(n, d, x), Matrix<T>(m, d, y),
                                  to<T>(reward));
  }
};

TEST_P(PairwiseCost, MatrixMatchesReferenceForEveryDistance) {
  for (Distance distance : reference::kDistances) {
    for (const auto& shape :
         {std::array<int64_t, 3>{1, 1, 1}, {5, 7, 3}, {23, 97, 11}, {49, 31, 32}, {25, 130, 40}}) {
      const int64_t n = shape[0], m = shape[1], d = shape[2];
      const Case c(n, m, d, distance, distance == Distance::ExpManhattan ? Data::Tiny : Data::Normal);
      SCOPED_TRACE(std::to_string(static_cast<int>(distance)) + ": " + std::to_string(n) + " x " +
                   std::to_string(m));
      const Outputs got = run(pair_cost_scratch_bytes(context(), n, m, d), [&](OpRun& op) {
        cost_matrix(op.ctx, {c.cost(op), op.out("c", n, m, m + 3)});
      });
      expect_close(got["c"], c.expected<double>().data, c.expected<float>().data);
    }
  }
}

TEST_P(PairwiseCost, PairedIsTheDiagonal) {
  for (Distance distance : reference::kDistances) {
    for (int64_t n : {0, 1, 13, 600}) {
      const Case c(n, n, 11, distance, distance == Distance::ExpManhattan ? Data::Tiny : Data::Normal);
      const Outputs got = run(0, [&](OpRun& op) { cost_paired(op.ctx, {c.cost(op), op.out("c", n)}); });
      const auto exact = c.expected<double>();
      const auto plain = c.expected<float>();
      std::vector<double> want;
      std::vector<float> rough;
      for (int64_t i = 0; i < n; ++i) want.push_back(exact(i, i)), rough.push_back(plain(i, i));
      if (n > 0) expect_close(got["c"], want, rough);
    }
  }
}

TEST_P(PairwiseCost, HugeStatesKeepTheirDistance) {
  for (Distance distance :
       {Distance::SquaredEuclidean, Distance::Euclidean, Distance::Manhattan, Distance::Cosine}) {
    const Case c(29, 37, 5, distance, Data::Huge);
    const Outputs got = run(pair_cost_scratch_bytes(context(), c.n, c.m, c.d), [&](OpRun& op) {
      cost_matrix(op.ctx, {c.cost(op), op.out("c", c.n, c.m)});
    });
    expect_close(got["c"], c.expected<double>().data, c.expected<float>().data);
  }
}

// Neighbours far from the origin: the form with norms would lose everything, and could be negative.
TEST_P(PairwiseCost, SquaredDistanceDoesNotCancel) {
  Case c(26, 33, 4, Distance::SquaredEuclidean);
  for (float& v : c.x) v = 1000.f + v / 64;
  for (float& v : c.y) v = 1000.f + v / 64;
  std::fill(c.reward.begin(), c.reward.end(), 0.f);
  const Outputs got = run(pair_cost_scratch_bytes(context(), c.n, c.m, c.d), [&](OpRun& op) {
    cost_matrix(op.ctx, {c.cost(op), op.out("c", c.n, c.m)});
  });
  expect_within(got["c"], c.expected<double>().data, 1e-6);
  for (float v : got["c"]) EXPECT_GE(v, 0.f);
}

TEST_P(PairwiseCost, CosineOfAZeroStateIsOne) {
  Case c(2, 3, 8, Distance::Cosine);
  std::fill(c.x.begin(), c.x.end(), 0.f);
  std::fill(c.reward.begin(), c.reward.end(), 0.f);
  const Outputs got = run(pair_cost_scratch_bytes(context(), 2, 3, 8), [&](OpRun& op) {
    cost_matrix(op.ctx, {c.cost(op), op.out("c", 2, 3)});
  });
  expect_equal(got["c"], std::vector<float>(6, c.beta));
}

TEST_P(PairwiseCost, EmptyAndMismatchedShapes) {
  const Case none(0, 5, 3, Distance::Manhattan);
  run(pair_cost_scratch_bytes(context(), 0, 5, 3), [&](OpRun& op) {
    cost_matrix(op.ctx, {none.cost(op), op.out("c", 0, 5)});
  });
  const Case c(4, 5, 3, Distance::Manhattan);
  expect_error(ErrorCode::InvalidArgument, "cost_matrix: c is 4 x 4, expected 4 x 5", [&] {
    run(1 << 16, [&](OpRun& op) { cost_matrix(op.ctx, {c.cost(op), op.out("c", 4, 4)}); });
  });
  expect_error(ErrorCode::InvalidArgument, "cost_paired: x has 4 rows, y has 5", [&] {
    run(1 << 16, [&](OpRun& op) { cost_paired(op.ctx, {c.cost(op), op.out("c", 4)}); });
  });
  Case infinite = c;
  infinite.beta = INFINITY;
  expect_error(ErrorCode::InvalidArgument, "beta is inf", [&] {
    run(1 << 16, [&](OpRun& op) { cost_matrix(op.ctx, {infinite.cost(op), op.out("c", 4, 5)}); });
  });
}

}  // namespace
}  // namespace pwdice::test
