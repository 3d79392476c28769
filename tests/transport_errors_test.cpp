// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// What the transport ops refuse, and what becomes of values that are not finite.
#include <cmath>
#include <limits>

#include "transport_case.h"

namespace pwdice::test {
namespace {

using Case = TransportProblem;

class TransportErrors : public TransportCase {};
INSTANTIATE_TEST_SUITE_P(, TransportErrors, testing::ValuesIn(test_backends()), backend_name);

TEST_P(TransportErrors, RejectsWhatItCannotDo) {
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

TEST_P(TransportErrors, NamesAValueThatIsNotFinite) {
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

// A maximum takes no notice of NaN: where all of a part of the rows is NaN it must arrive in another way.
TEST_P(TransportErrors, NanInAWholeBlockOfRowsIsNotLost) {
  const auto expect_nan = [&](const Case& c) {
    SCOPED_TRACE(c.text());
    if (GetParam() == Backend::Cpu) {
      expect_error(ErrorCode::NotFinite, "transport_joint: a is nan in row", [&] { run_joint(c); });
    } else {
      EXPECT_TRUE(std::isnan(run_joint(c).value("loss")));
    }
  };
  Case first(60, 10, 2);
  std::fill_n(first.a.begin(), 28, NAN);
  expect_nan(first);
  for (int64_t n : {97, 113}) {  // blocks of 24 or 28 rows, and one that is left
    Case last(n, 3000, 1);
    last.a.back() = NAN;
    expect_nan(last);
  }
}

// An expert state of weight 0 takes no part in loss and gradients, whatever it and its potential are. Its own column_lse
// is what it is.
TEST_P(TransportErrors, AStateOfWeightZeroMayBeNan) {
  for (Distance distance : reference::kDistances) {
    Case c(33, 20, 6);
    c.distance = distance;
    for (size_t j = 0; j < c.q.size(); j += 2) c.q[j] = 0.f;
    c.normalise_q();
    SCOPED_TRACE(static_cast<int>(distance));
    const auto exact = c.inputs<double>();
    const auto plain = c.inputs<float>();
    auto columns = semidual(exact);
    auto rough = semidual(plain);
    for (size_t j = 0; j < c.q.size(); j += 2) c.y[j * 6 + j % 6] = c.b[j] = NAN;
    expect_result(c, run_joint(c), joint(exact), joint(plain));
    for (Divergence divergence : kChi2s)
      expect_result(c, run_chi2(c, divergence), chi2(exact, divergence), chi2(plain, divergence));
    if (distance != Distance::Indicator) {
      for (size_t j = 0; j < c.q.size(); j += 2) columns.col_lse[j] = rough.col_lse[j] = NAN;
    }
    expect_result(c, run_semidual(c), columns, rough);
  }
}

// An infinite cost or a potential of -inf is a pair that is never chosen.
TEST_P(TransportErrors, InfinitelyFarIsNeverChosen) {
  Case c(30, 40, 3);
  c.x[26 * 3 + 1] = std::numeric_limits<float>::infinity();
  c.a[11] = -std::numeric_limits<float>::infinity();
  const Outputs got = run_joint(c);
  expect_result(c, got, joint(c.inputs<double>()), joint(c.inputs<float>()));
  EXPECT_EQ(got["d_a"][26], 0.f);
  EXPECT_EQ(got["d_a"][11], 0.f);
}

}  // namespace
}  // namespace pwdice::test
