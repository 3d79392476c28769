// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/transport.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "transport_case.h"

namespace pwdice::test {
namespace {

using reference::chi2;
using reference::joint;
using reference::paired;
using reference::semidual;
template <class T>
using Inputs = reference::TransportInputs<T>;
using Case = TransportProblem;

INSTANTIATE_TEST_SUITE_P(, TransportCase, testing::ValuesIn(test_backends()), backend_name);

TEST_P(TransportCase, ShapesAroundTheTiles) {
  for (auto [n, m] : {std::pair<int64_t, int64_t>{1, 1},
                      {1, 40},
                      {40, 1},
                      {23, 15},
                      {24, 16},
                      {25, 17},
                      {49, 97},
                      {131, 224}}) {
    check(Case(n, m, 11));
  }
}

TEST_P(TransportCase, WidthsOfTheState) {
  for (int64_t d : {1, 3, 8, 32, 40, 111}) check(Case(37, 29, d).with(4.f / static_cast<float>(d), 0.5f));
}

TEST_P(TransportCase, EveryDistance) {
  for (Distance distance : reference::kDistances) {
    Case c(29, 35, 5);
    c.distance = distance;
    if (distance == Distance::ExpManhattan) c.beta = 1e-3f;
    if (distance == Distance::Indicator) std::copy_n(c.x.begin(), 10 * c.d, c.y.begin() + 3 * c.d);
    check(c);
  }
}

TEST_P(TransportCase, HugeTinyAndEqualStates) {
  for (Data data : {Data::Huge, Data::Tiny, Data::Equal}) {
    for (Distance distance :
         {Distance::SquaredEuclidean, Distance::Euclidean, Distance::Manhattan, Distance::Cosine}) {
      SCOPED_TRACE(name(data));
      Case c(29, 35, 5);
      c.distance = distance;
      c.x = make_data(data, c.n * c.d, 1), c.y = make_data(data, c.m * c.d, 2);
      check(c);
    }
  }
}

TEST_P(TransportCase, SeveralSectionsOfRowsAndColumns) {
  check(Case(31, 1100, 4));
  check(Case(400, 500, 4));
}

TEST_P(TransportCase, EmbeddingsAtTheTemperatureOfTheKitchen) {
  check(Case(60, 75, 32).on_sphere().with(5.f, 0.5f));
  check(Case(60, 75, 32).on_sphere().with(5.f, 0.01f));
}

// Expert states beside the states of the batch, potentials of the size of eps: the exponents that count are near zero,
// and what |x|^2 + |y|^2 - 2 <x, y> cancels is a thousand times what plain float code loses.
TEST_P(TransportCase, NeighboursAmongEmbeddingsAtSmallEps) {
  Case c(60, 60, 32);
  for (size_t k = 0; k < c.y.size(); ++k) c.y[k] = c.x[k] + 1e-2f * c.y[k];
  for (auto* values : {&c.a, &c.b, &c.reward}) {
    for (float& v : *values) v *= 0.01f;
  }
  check(c.on_sphere().with(5.f, 0.01f));
}

// Costs in the hundreds at eps = 0.01: exponents of 1e5, of which a shift by an upper bound would leave
// nothing.
TEST_P(TransportCase, CostsInTheHundredsAtSmallEps) { check(Case(70, 50, 11).with(20.f, 0.01f)); }

// The maximum rises in every tile, by thousands: each time the sums so far must vanish, not stay or overflow.
TEST_P(TransportCase, MaximumThatRisesInEveryTile) {
  Case c(120, 300, 3);
  for (int64_t i = 0; i < c.n; ++i) c.a[size_t(i)] = static_cast<float>(i);
  for (int64_t j = 0; j < c.m; ++j) c.b[size_t(j)] = static_cast<float>(j) / 8;
  check(c.with(0.1f, 0.05f));
  std::reverse(c.a.begin(), c.a.end());
  check(c);
}

TEST_P(TransportCase, NeighboursFarFromTheOrigin) {
  Case c(40, 45, 4);
  for (auto* z : {&c.x, &c.y}) {
    for (float& v : *z) v = 3000.f + v / 16;
  }
  check(c.with(20.f, 0.05f));
}

// The points that fill the last tile up are the origin, whose distance overflows here.
TEST_P(TransportCase, OriginFartherThanFloatReaches) {
  Case c(40, 45, 4);
  c.distance = Distance::ExpManhattan;
  for (auto* z : {&c.x, &c.y}) {
    for (float& v : *z) v = 25.f + v / 16;
  }
  check(c);
}

TEST_P(TransportCase, ZeroWeightDropsTheColumn) {
  Case c(33, 20, 6);
  for (size_t j = 0; j < c.q.size(); j += 2) c.q[j] = 0.f;
  c.normalise_q();
  const auto exact = c.inputs<double>();
  const Outputs got = run_joint(c);
  expect_result(c, got, joint(exact), joint(c.inputs<float>()));
  for (size_t j = 0; j < c.q.size(); j += 2) EXPECT_EQ(got["d_b"][j], 0.f);
  expect_result(c, run_semidual(c), semidual(exact), semidual(c.inputs<float>()));
}

TEST_P(TransportCase, PairedMatchesReference) {
  for (int64_t n : {1, 13, 1024, 1031}) {
    for (Divergence divergence : {Divergence::Kl, Divergence::Chi2, Divergence::Chi2Exact}) {
      for (float eps : {0.5f, 0.01f}) {
        for (float beta : {1.f, 20.f}) {  // the latter makes costs in the hundreds
          const Case c = Case(n, n, 11).with(beta, eps);
          SCOPED_TRACE(c.text());
          expect_result(c, run_paired(c, divergence), paired(c.inputs<double>(), divergence),
                        paired(c.inputs<float>(), divergence));
        }
      }
    }
  }
}

TEST_P(TransportCase, GradientsAgreeWithCentralDifferences) {
  const Case c(9, 7, 3);
  const Inputs<double> in = c.inputs<double>();
  const auto along = [&](std::vector<double> Inputs<double>::*field, auto loss) {
    return [&, field, loss](const std::vector<double>& v) {
      Inputs<double> moved = in;
      moved.*field = v;
      return loss(moved);
    };
  };
  const auto joint_loss = [](const Inputs<double>& i) { return joint(i).loss; };
  const Outputs got = run_joint(c);
  expect_gradient(got["d_a"], along(&Inputs<double>::a, joint_loss), in.a);
  expect_gradient(got["d_b"], along(&Inputs<double>::b, joint_loss), in.b);
  expect_gradient(run_semidual(c)["d_a"],
                  along(&Inputs<double>::a, [](const Inputs<double>& i) { return semidual(i).loss; }), in.a);
  for (Divergence divergence : kChi2s) {
    const auto loss = [divergence](const Inputs<double>& i) { return chi2(i, divergence).loss; };
    expect_gradient(run_chi2(c, divergence)["d_b"], along(&Inputs<double>::b, loss), in.b);
  }
}

// A constant added to a potential moves the loss by exactly that constant (the linear terms of the dual take
// it back), and p sums to one: what is left of either is a drift of the gauge.
TEST_P(TransportCase, ConstantShiftsMoveTheLossAlone) {
  Case c = Case(300, 250, 16).on_sphere().with(5.f, 0.5f);
  const Outputs joint_before = run_joint(c), semi_before = run_semidual(c);
  for (float& v : c.a) v += 4.f;
  const Outputs joint_after = run_joint(c), semi_after = run_semidual(c);
  EXPECT_NEAR(joint_after.value("loss") - joint_before.value("loss"), 4.0, 4e-6);
  EXPECT_NEAR(semi_after.value("loss") - semi_before.value("loss"), 4.0, 4e-6);
  for (const auto& gradient : {joint_after["d_a"], joint_after["d_b"], semi_after["d_a"]}) {
    EXPECT_NEAR(std::accumulate(gradient.begin(), gradient.end(), 0.0), 1.0, 2e-7);
  }
  expect_within(joint_after["d_a"], to(joint_before["d_a"]), 2e-5);
}

TEST_P(TransportCase, JointFollowsFromTheColumns) {
  const Case c = Case(210, 64, 8).with(1.f, 0.3f);
  const std::vector<float> lse = run_columns(c);
  std::vector<double> s;
  for (size_t j = 0; j < lse.size(); ++j)
    s.push_back(std::log(double(c.q[j])) + double(c.b[j]) / 0.3f + double(lse[j]));
  EXPECT_NEAR(run_joint(c).value("loss"), 0.3 * reference::logsumexp(s), 2e-6);
}

// The expert potential that the semidual has eliminated is the best one for the joint loss: nothing is left of its
// gradient but q, and the gradient of the other potential is the same.
TEST_P(TransportCase, SemidualIsTheJointAtItsBestPotential) {
  Case c = Case(130, 90, 16).on_sphere().with(5.f, 0.1f);
  const Outputs semi = run_semidual(c);
  double linear = 0;
  for (size_t j = 0; j < c.b.size(); ++j) {
    c.b[j] = -c.eps * semi["col_lse"][j];
    linear += double(c.q[j]) * double(c.b[j]);
  }
  const Outputs full = run_joint(c);
  EXPECT_NEAR(full.value("loss") - linear, semi.value("loss"), 2e-6);
  expect_within(full["d_b"], to(c.q), 2e-5);
  expect_within(full["d_a"], to(semi["d_a"]), 2e-5);
}

// Beyond 65536 rows the CPU's semidual takes two sweeps.
class TransportLarge : public testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(, TransportLarge, testing::ValuesIn(large_test_backends()), backend_name);

TEST_P(TransportLarge, SemidualInTwoSweeps) {
  Case c(65600, 5, 2);
  c.q[3] = 0.f;
  c.normalise_q();
  Context ctx({.backend = GetParam(), .threads = 2, .scratch_bytes = size_t{32} << 20});
  auto exact = semidual(c.inputs<double>());
  c.y[3 * 2] = NAN, exact.col_lse[3] = NAN;  // weight 0: nobody else notices
  OpRun op(ctx, 0);
  transport_semidual(ctx, {c.cost(op), op.in(c.a), op.in(c.q), c.eps, op.out("loss", 1), op.out("d_a", c.n),
                           op.out("col_lse", c.m)});
  const Outputs got = op.finish();
  expect_within(got.value("loss"), exact.loss, 1e-6);
  expect_within(got["d_a"], exact.d_a, 1e-5);
  expect_within(got["col_lse"], exact.col_lse, 1e-6);
}

TEST(TransportMemory, AStreamingPassNeedsNoMoreForMoreRows) {
  const Context ctx({.backend = Backend::Cpu, .threads = 2, .scratch_bytes = 1 << 10});
  const size_t bytes = column_lse_scratch_bytes(ctx, 1, 1000, 32);
  EXPECT_LT(bytes, size_t{2} << 20);
  EXPECT_EQ(column_lse_scratch_bytes(ctx, 1200000000, 1000, 32), bytes);
}

// As many sections of rows as there can be: the sums of each are most of what is needed.
TEST(TransportMemory, AStreamingPassFitsIntoItsScratch) {
  const Case c(4096, 1000, 8);
  const Context small({.backend = Backend::Cpu, .threads = 2, .scratch_bytes = 1 << 10});
  const size_t bytes = column_lse_scratch_bytes(small, c.n, c.m, c.d);
  Context ctx({.backend = Backend::Cpu, .threads = 2, .scratch_bytes = bytes});
  OpRun op(ctx, 0);
  call_columns(op, c);
  expect_close(op.finish()["col_lse"], semidual(c.inputs<double>()).col_lse,
               semidual(c.inputs<float>()).col_lse);
  EXPECT_GT(ctx.scratch().peak(), bytes / 2);
}

// Who takes scratch for the largest batch has enough for every other one.
TEST_P(TransportCase, ScratchGrowsWithTheBatch) {
  using Bytes = size_t (*)(const Context&, int64_t, int64_t, int64_t);
  for (const Bytes bytes : {Bytes{transport_scratch_bytes}, Bytes{column_lse_scratch_bytes}}) {
    size_t of_states = 0, of_expert_states = 0;
    for (int64_t n = 1; n < 2000000; n += n < 20000 ? 1 : n / 4) {
      const size_t more_states = bytes(context(), n, 1000, 32),
                   more_expert_states = bytes(context(), 1000, n, 8);
      EXPECT_GE(more_states, of_states) << n;
      EXPECT_GE(more_expert_states, of_expert_states) << n;
      of_states = more_states, of_expert_states = more_expert_states;
    }
  }
}

}  // namespace
}  // namespace pwdice::test
