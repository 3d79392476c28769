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

// Several owners of rows and of columns on the CPU, so that two threads share the work (kernels/cpu/pair_plan.h).
TEST_P(PairwiseCost, MatrixOfSeveralOwners) {
  for (Distance distance : {Distance::SquaredEuclidean, Distance::Manhattan}) {
    const Case c(300, 1100, 3, distance);
    const Outputs got = run(pair_cost_scratch_bytes(context(), c.n, c.m, c.d), [&](OpRun& op) {
      cost_matrix(op.ctx, {c.cost(op), op.out("c", c.n, c.m, c.m + 1)});
    });
    expect_close(got["c"], c.expected<double>().data, c.expected<float>().data);
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

// NaN in a state or a reward is NaN in all of its costs and changes no bit of the others, whatever the distance.
TEST_P(PairwiseCost, NanStaysInItsRowOrColumn) {
  for (Distance distance : reference::kDistances) {
    SCOPED_TRACE(static_cast<int>(distance));
    const Case clean(13, 19, 5, distance, distance == Distance::ExpManhattan ? Data::Tiny : Data::Normal);
    const auto matrix = [&](const Case& c) {
      return run(pair_cost_scratch_bytes(context(), c.n, c.m, c.d), [&](OpRun& op) {
        cost_matrix(op.ctx, {c.cost(op), op.out("c", c.n, c.m)});
      })["c"];
    };
    Case in_x = clean, in_y = clean, in_reward = clean;
    in_x.x[7 * 5 + 2] = in_y.y[7 * 5 + 2] = in_reward.reward[7] = NAN;
    const auto before = matrix(clean), x = matrix(in_x), y = matrix(in_y), reward = matrix(in_reward);
    for (size_t at = 0; at < before.size(); ++at) {
      const size_t i = at / 19, j = at % 19;
      EXPECT_EQ(std::isnan(x[at]), i == 7) << i << ", " << j;
      EXPECT_EQ(std::isnan(y[at]), j == 7) << i << ", " << j;
      EXPECT_EQ(std::isnan(reward[at]), i == 7) << i << ", " << j;
      EXPECT_TRUE(i == 7 || (x[at] == before[at] && reward[at] == before[at])) << i << ", " << j;
      EXPECT_TRUE(j == 7 || y[at] == before[at]) << i << ", " << j;
    }
  }
}

TEST_P(PairwiseCost, PairedNamesAValueThatIsNan) {
  for (Distance distance : reference::kDistances) {
    SCOPED_TRACE(static_cast<int>(distance));
    const Case clean(13, 13, 5, distance);
    const auto paired = [&](const Case& c) {
      return run(0, [&](OpRun& op) { cost_paired(op.ctx, {c.cost(op), op.out("c", c.n)}); })["c"];
    };
    const auto expect = [&](const char* part, const Case& c) {
      if (GetParam() == Backend::Cpu) {
        expect_error(ErrorCode::NotFinite, part, [&] { paired(c); });
      } else {  // a GPU is not read back
        const std::vector<float> got = paired(c);
        for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i == 7) << i;
      }
    };
    Case in_x = clean, in_y = clean, in_reward = clean;
    in_x.x[7 * 5 + 2] = in_y.y[7 * 5 + 2] = in_reward.reward[7] = NAN;
    expect("cost_paired: x is nan in row 7, column 2", in_x);
    expect("cost_paired: y is nan in row 7, column 2", in_y);
    expect("cost_paired: reward is nan in row 7", in_reward);
  }
}

TEST_P(PairwiseCost, IndicatorOfInfinities) {
  const float inf = INFINITY;
  Case c(2, 3, 2, Distance::Indicator);
  c.beta = 1.f, c.reward = {0.f, 0.f};
  c.x = {inf, 1.f, -inf, 1.f}, c.y = {inf, 1.f, -inf, 1.f, 0.f, 1.f};
  const Outputs got = run(pair_cost_scratch_bytes(context(), 2, 3, 2), [&](OpRun& op) {
    cost_matrix(op.ctx, {c.cost(op), op.out("c", 2, 3)});
  });
  expect_equal(got["c"], {0.f, 1.f, 1.f, 1.f, 0.f, 1.f});
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
