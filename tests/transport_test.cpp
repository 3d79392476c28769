// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/transport.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "op_case.h"
#include "transport_reference.h"

namespace pwdice::test {
namespace {

using reference::chi2;
using reference::joint;
using reference::Matrix;
using reference::paired;
using reference::semidual;
template <class T>
using Inputs = reference::TransportInputs<T>;
template <class T>
using Result = reference::TransportResult<T>;

constexpr Divergence kChi2s[] = {Divergence::Chi2, Divergence::Chi2Exact};

struct Case {
  int64_t n, m, d;
  Distance distance = Distance::SquaredEuclidean;
  float beta = 2.f, eps = 0.5f;
  std::vector<float> x, y, reward, a, b, q;

  Case(int64_t rows, int64_t cols, int64_t width) : n(rows), m(cols), d(width) {
    x = normal(n * d, 1), y = normal(m * d, 2), reward = normal(n, 3), a = normal(n, 4), b = normal(m, 5);
    q = uniform(m, 0.1f, 1.f, 6);
    normalise_q();
  }
  void normalise_q() {
    const double sum = std::accumulate(q.begin(), q.end(), 0.0);
    for (float& v : q) v = static_cast<float>(v / sum);
  }
  Case& with(float scale_beta, float new_eps) { return beta = scale_beta, eps = new_eps, *this; }
  Case& on_sphere() {
    for (auto* z : {&x, &y}) {
      for (size_t i = 0; i < z->size(); i += size_t(d)) {
        double squares = 0;
        for (size_t k = i; k < i + size_t(d); ++k) squares += double((*z)[k]) * double((*z)[k]);
        for (size_t k = i; k < i + size_t(d); ++k) (*z)[k] = float(double((*z)[k]) / std::sqrt(squares));
      }
    }
    return *this;
  }
  template <class T>
  Inputs<T> inputs() const {
    return {reference::cost_matrix(distance, static_cast<T>(beta), Matrix<T>(n, d, x), Matrix<T>(m, d, y),
                                   to<T>(reward)),
            to<T>(a), to<T>(b), to<T>(q), static_cast<T>(eps)};
  }
  PairCost cost(OpRun& op) const {
    return {distance, beta, op.in(x, n, d, d + 1), op.in(y, m, d, d + 2), op.in(reward)};
  }
  std::string text() const {
    return std::to_string(n) + " x " + std::to_string(m) + " x " + std::to_string(d) + ", eps " +
           std::to_string(eps);
  }
};

// What a rounding of the largest exponent does to p, several times over: better than that is luck.
double exponent_rounding(const Case& c) {
  const auto in = c.inputs<double>();
  double largest = 0;
  for (int64_t i = 0; i < c.n; ++i) {
    for (int64_t j = 0; j < c.m; ++j) {
      const double y = (in.a[size_t(i)] + in.b[size_t(j)] - in.c(i, j)) / in.eps;
      if (std::isfinite(y)) largest = std::max(largest, std::abs(y));
    }
  }
  return 4 * 0x1p-24 * largest;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& want,
                 const std::vector<float>& plain, double rtol) {
  double scale = 0, worst = 0;
  for (double v : want) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < want.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]));
  if (!(worst <= rtol * scale)) expect_close(got, want, plain);
}

void expect_result(const Case& c, const Outputs& got, const Result<double>& exact,
                   const Result<float>& plain) {
  const double rtol = exponent_rounding(c);
  expect_close(got.value("loss"), exact.loss, plain.loss);
  expect_near(got["d_a"], exact.d_a, plain.d_a, rtol);
  if (!exact.d_b.empty()) expect_near(got["d_b"], exact.d_b, plain.d_b, rtol);
  if (!exact.col_lse.empty()) expect_close(got["col_lse"], exact.col_lse, plain.col_lse);
}

class TransportCase : public OpTest {
 protected:
  size_t scratch(const Case& c) { return transport_scratch_bytes(context(), c.n, c.m, c.d); }
  Outputs run_joint(const Case& c) {
    return run(scratch(c), [&](OpRun& op) {
      transport_joint(op.ctx, {c.cost(op), op.in(c.a), op.in(c.b), op.in(c.q), c.eps, op.out("loss", 1),
                               op.out("d_a", c.n), op.out("d_b", c.m)});
    });
  }
  Outputs run_semidual(const Case& c) {
    return run(scratch(c), [&](OpRun& op) {
      transport_semidual(op.ctx, {c.cost(op), op.in(c.a), op.in(c.q), c.eps, op.out("loss", 1),
                                  op.out("d_a", c.n), op.out("col_lse", c.m)});
    });
  }
  Outputs run_chi2(const Case& c, Divergence divergence) {
    return run(scratch(c), [&](OpRun& op) {
      transport_chi2(op.ctx, {c.cost(op), op.in(c.a), op.in(c.b), op.in(c.q), c.eps, divergence,
                              op.out("loss", 1), op.out("d_a", c.n), op.out("d_b", c.m)});
    });
  }
  Outputs run_paired(const Case& c, Divergence divergence) {
    return run(scratch(c), [&](OpRun& op) {
      transport_paired(op.ctx, {c.cost(op), op.in(c.a), op.in(c.b), c.eps, divergence, op.out("loss", 1),
                                op.out("d_a", c.n), op.out("d_b", c.n)});
    });
  }
  std::vector<float> run_columns(const Case& c) {
    return run(scratch(c), [&](OpRun& op) {
      column_lse(op.ctx, {c.cost(op), op.in(c.a), c.eps, op.out("col_lse", c.m)});
    })["col_lse"];
  }
  // Every all-pairs op on one case.
  void check(const Case& c) {
    SCOPED_TRACE(c.text());
    const auto exact = c.inputs<double>();
    const auto plain = c.inputs<float>();
    expect_result(c, run_joint(c), joint(exact), joint(plain));
    const auto columns = semidual(exact);
    const auto rough = semidual(plain);
    expect_result(c, run_semidual(c), columns, rough);
    expect_close(run_columns(c), columns.col_lse, rough.col_lse);
    for (Divergence divergence : kChi2s)
      expect_result(c, run_chi2(c, divergence), chi2(exact, divergence), chi2(plain, divergence));
  }
};
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

TEST_P(TransportCase, SeveralSectionsOfRowsAndColumns) {
  check(Case(31, 1100, 4));
  check(Case(400, 500, 4));
}

TEST_P(TransportCase, EmbeddingsAtTheTemperatureOfTheKitchen) {
  check(Case(60, 75, 32).on_sphere().with(5.f, 0.5f));
  check(Case(60, 75, 32).on_sphere().with(5.f, 0.01f));
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
        const Case c = Case(n, n, 11).with(1.f, eps);
        SCOPED_TRACE(c.text());
        expect_result(c, run_paired(c, divergence), paired(c.inputs<double>(), divergence),
                      paired(c.inputs<float>(), divergence));
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

TEST_P(TransportCase, RejectsWhatItCannotDo) {
  const auto with = [](auto change) {
    Case c(4, 3, 2);
    change(c);
    return c;
  };
  const auto expect = [&](const char* part, auto change) {
    expect_error(ErrorCode::InvalidArgument, part, [&] { run_joint(with(change)); });
  };
  expect("eps is 0", [](Case& c) { c.eps = 0.f; });
  expect("eps is -0.5", [](Case& c) { c.eps = -0.5f; });
  expect("eps is inf", [](Case& c) { c.eps = INFINITY; });
  expect("transport_joint: b has 2 values, expected 3", [](Case& c) { c.b.pop_back(); });
  expect("reward has 3 values, expected 4", [](Case& c) { c.reward.pop_back(); });
  expect_error(ErrorCode::InvalidArgument, "0 states and 3 expert states", [&] { run_joint(Case(0, 3, 2)); });
  expect_error(ErrorCode::InvalidArgument, "x has 4 rows, y has 3",
               [&] { run_paired(Case(4, 3, 2), Divergence::Kl); });
  expect_error(ErrorCode::InvalidArgument, "the divergence is KL",
               [&] { run_chi2(Case(4, 3, 2), Divergence::Kl); });
  if (GetParam() != Backend::Cpu) return;  // the values of q are not read back from a GPU
  expect("the weights q sum to 0", [](Case& c) { std::fill(c.q.begin(), c.q.end(), 0.f); });
  expect("the weights q sum to 3", [](Case& c) { std::fill(c.q.begin(), c.q.end(), 1.f); });
  expect("q is -0.5 in row 1", [](Case& c) { c.q[1] = -0.5f; });
  expect("q is nan in row 2", [](Case& c) { c.q[2] = NAN; });
}

TEST_P(TransportCase, NamesAValueThatIsNotFinite) {
  if (GetParam() != Backend::Cpu) return;  // a GPU is not read back; there the guard of adam protects
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto expect = [](const char* part, auto run) { expect_error(ErrorCode::NotFinite, part, run); };
  for (float bad : {nan, inf}) {
    Case in_a(30, 40, 3), in_b(30, 40, 3), same(30, 30, 3);
    in_a.a[7] = bad, in_b.b[39] = bad, same.b[11] = bad;
    expect("transport_joint: a is", [&] { run_joint(in_a); });
    expect("transport_joint: b is", [&] { run_joint(in_b); });
    expect("transport_semidual: a is", [&] { run_semidual(in_a); });
    expect("transport_chi2: b is", [&] { run_chi2(in_b, Divergence::Chi2); });
    expect("transport_paired: b is", [&] { run_paired(same, Divergence::Kl); });
  }
  Case in_x(30, 40, 3);
  in_x.x[26 * 3 + 1] = nan;
  expect("transport_joint: x is nan in row 26, column 1", [&] { run_joint(in_x); });
  expect("transport_semidual: x is nan in row 26, column 1", [&] { run_semidual(in_x); });
}

// An infinite cost or a potential of -inf is a pair that is never chosen.
TEST_P(TransportCase, InfinitelyFarIsNeverChosen) {
  Case c(30, 40, 3);
  c.x[26 * 3 + 1] = std::numeric_limits<float>::infinity();
  c.a[11] = -std::numeric_limits<float>::infinity();
  const Outputs got = run_joint(c);
  expect_result(c, got, joint(c.inputs<double>()), joint(c.inputs<float>()));
  EXPECT_EQ(got["d_a"][26], 0.f);
  EXPECT_EQ(got["d_a"][11], 0.f);
}

// Beyond 65536 rows the CPU's semidual takes two sweeps.
class TransportLarge : public testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(, TransportLarge, testing::ValuesIn(large_test_backends()), backend_name);

TEST_P(TransportLarge, SemidualInTwoSweeps) {
  const Case c(65600, 5, 2);
  Context ctx({.backend = GetParam(), .threads = 2, .scratch_bytes = size_t{32} << 20});
  OpRun op(ctx, 0);
  transport_semidual(ctx, {c.cost(op), op.in(c.a), op.in(c.q), c.eps, op.out("loss", 1), op.out("d_a", c.n),
                           op.out("col_lse", c.m)});
  const Outputs got = op.finish();
  const auto exact = semidual(c.inputs<double>());
  expect_within(got.value("loss"), exact.loss, 1e-6);
  expect_within(got["d_a"], exact.d_a, 1e-5);
  expect_within(got["col_lse"], exact.col_lse, 1e-6);
}

TEST(TransportMemory, ScratchDoesNotGrowWithTheDataSet) {
  Context ctx({.backend = Backend::Cpu, .threads = 2, .scratch_bytes = 1 << 10});
  EXPECT_LT(transport_scratch_bytes(ctx, 1200000, 1000, 32), size_t{24} << 20);
}

}  // namespace
}  // namespace pwdice::test
