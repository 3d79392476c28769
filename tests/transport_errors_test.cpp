// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// What the transport ops refuse, and what becomes of values that are not finite.
#include <algorithm>
#include <cmath>
#include <limits>

#include "transport_case.h"

namespace pwdice::test {
namespace {

using Case = TransportProblem;

class TransportErrors : public TransportCase {};
INSTANTIATE_TEST_SUITE_P(, TransportErrors, testing::ValuesIn(test_backends()), backend_name);

TEST_P(TransportErrors, RejectsWhatItCannotDo) {
  for (const TransportTerm& term : transport_terms()) {
    const auto expect = [&](const std::string& part, int64_t n, int64_t m, auto change) {
      Case c(n, m, 2);
      change(c);
      expect_error(ErrorCode::InvalidArgument, term.name + ": " + part, [&] { run_term(term, c); });
    };
    expect("eps is 0, expected a positive number", 3, 3, [](Case& c) { c.eps = 0.f; });
    expect("eps is -0.5", 3, 3, [](Case& c) { c.eps = -0.5f; });
    expect("eps is inf", 3, 3, [](Case& c) { c.eps = INFINITY; });
    expect("eps is nan", 3, 3, [](Case& c) { c.eps = NAN; });
    expect("eps is 9.99995e-41, expected a positive number, 1.2e-38 to 3.4e38", 3, 3,
           [](Case& c) { c.eps = 1e-40f; });
    expect("beta is nan", 3, 3, [](Case& c) { c.beta = NAN; });
    expect("distance is 6, expected 0 to 5", 3, 3, [](Case& c) { c.distance = static_cast<Distance>(6); });
    expect("a has 2 values, expected 3", 3, 3, [](Case& c) { c.a.pop_back(); });
    expect("reward has 2 values, expected 3", 3, 3, [](Case& c) { c.reward.pop_back(); });
    if (term.with_b) expect("b has 2 values, expected 3", 3, 3, [](Case& c) { c.b.pop_back(); });
    if (term.with_q) expect("q has 2 values, expected 3", 3, 3, [](Case& c) { c.q.pop_back(); });
    expect("0 states and 3 expert states, expected at least 1 of each", 0, 3, [](Case&) {});
    expect("3 states and 0 expert states, expected at least 1 of each", 3, 0, [](Case&) {});
    if (!term.with_q || GetParam() != Backend::Cpu) continue;  // the values of q are not read back from a GPU
    expect("the weights q sum to 0", 3, 3, [](Case& c) { std::fill(c.q.begin(), c.q.end(), 0.f); });
    expect("the weights q sum to 3", 3, 3, [](Case& c) { std::fill(c.q.begin(), c.q.end(), 1.f); });
    expect("q is -0.5 in row 1", 3, 3, [](Case& c) { c.q[1] = -0.5f; });
    expect("q is nan in row 2", 3, 3, [](Case& c) { c.q[2] = NAN; });
    expect("the weights q sum to inf", 3, 3, [](Case& c) { c.q[0] = INFINITY; });
  }
  expect_error(ErrorCode::InvalidArgument, "transport_paired: x has 4 rows, y has 3",
               [&] { run_paired(Case(4, 3, 2), Divergence::Kl); });
  expect_error(ErrorCode::InvalidArgument, "transport_chi2: the divergence is KL",
               [&] { run_chi2(Case(4, 3, 2), Divergence::Kl); });
  for (const auto& [n, m, d, part] :
       {std::tuple<int64_t, int64_t, int64_t, const char*>{-1, 3, 2, "states is -1"},
        {3, -1, 2, "expert states is -1"},
        {3, 3, 0, "columns is 0"},
        {int64_t{1} << 60, 3, 2, "states is 1152921504606846976"},
        {3, (int64_t{1} << 30) + 1, 2, "expert states is 1073741825, expected 0 to 1073741824"}}) {
    for (const auto bytes : {transport_scratch_bytes, column_lse_scratch_bytes, pair_cost_scratch_bytes}) {
      expect_error(ErrorCode::InvalidArgument, part, [&, n = n, m = m, d = d] { bytes(context(), n, m, d); });
    }
  }
  const auto no_divergence = static_cast<Divergence>(3);
  expect_error(ErrorCode::InvalidArgument, "transport_chi2: divergence is 3, expected 0 to 2",
               [&] { run_chi2(Case(4, 3, 2), no_divergence); });
  expect_error(ErrorCode::InvalidArgument, "transport_paired: divergence is 3, expected 0 to 2",
               [&] { run_paired(Case(3, 3, 2), no_divergence); });
}

// transport_scratch_bytes() is enough for the term that needs most: too little for all of them is nothing at all, and for
// those over all pairs what the first of their buffers takes.
TEST_P(TransportErrors, TooLittleScratchLeavesTheOutputs) {
  const Case c(70, 70, 5);
  for (const TransportTerm& term : transport_terms()) {
    expect_too_little_scratch(context(), term.name, 0, [&](OpRun& op) { term.call(op, c); });
    if (term.name == "transport_paired") continue;
    expect_too_little_scratch(context(), term.name, 2048, [&](OpRun& op) { term.call(op, c); });
  }
}

TEST_P(TransportErrors, NamesAValueThatIsNan) {
  struct Field {
    std::string name;
    std::vector<float> Case::*values;
  };
  const Field fields[] = {
      {"x", &Case::x}, {"y", &Case::y}, {"reward", &Case::reward}, {"a", &Case::a}, {"b", &Case::b}};
  for (const TransportTerm& term : transport_terms()) {
    for (const Field& field : fields) {
      if (field.name == "b" && !term.with_b) continue;
      SCOPED_TRACE(term.name + ", " + field.name);
      Case c(30, 30, 3);
      (c.*field.values)[26] = std::numeric_limits<float>::quiet_NaN();
      if (GetParam() == Backend::Cpu) {
        const bool matrix = field.name == "x" || field.name == "y";
        expect_error(ErrorCode::NotFinite,
                     term.name + ": " + field.name + " is nan in row " + (matrix ? "8, column 2" : "26"),
                     [&] { run_term(term, c); });
      } else {  // a GPU is not read back; there NaN arrives, and the guard of adam protects
        const Outputs got = run_term(term, c);
        const auto values = got[term.name == "column_lse" ? "col_lse" : "loss"];
        EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); }));
      }
    }
  }
}

TEST_P(TransportErrors, NamesAPotentialThatIsInfinite) {
  if (GetParam() != Backend::Cpu) return;  // a GPU is not read back; there the guard of adam protects
  const float inf = std::numeric_limits<float>::infinity();
  for (const TransportTerm& term : transport_terms()) {
    Case c(30, 30, 3);
    c.a[7] = inf;
    expect_error(ErrorCode::NotFinite, term.name + ": a is inf in row 7", [&] { run_term(term, c); });
    if (!term.with_b) continue;
    c.a[7] = 0.f, c.b[29] = inf;
    expect_error(ErrorCode::NotFinite, term.name + ": b is inf in row 29", [&] { run_term(term, c); });
  }
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
TEST_P(TransportErrors, AStateOfWeightZeroMayBeAnything) {
  const auto check = [&](Distance distance, float value) {
    Case c(33, 20, 6);
    c.distance = distance;
    for (size_t j = 0; j < c.q.size(); j += 2) c.q[j] = 0.f;
    c.normalise_q();
    SCOPED_TRACE(static_cast<int>(distance));
    const auto exact = c.inputs<double>();
    const auto plain = c.inputs<float>();
    auto columns = semidual(exact);
    auto rough = semidual(plain);
    for (size_t j = 0; j < c.q.size(); j += 2) c.y[j * 6 + j % 6] = c.b[j] = value;
    expect_result(c, run_joint(c), joint(exact), joint(plain));
    for (Divergence divergence : kChi2s)
      expect_result(c, run_chi2(c, divergence), chi2(exact, divergence), chi2(plain, divergence));
    if (!std::isnan(value)) return;  // the lse of a far state is its own
    for (size_t j = 0; j < c.q.size(); j += 2) columns.col_lse[j] = rough.col_lse[j] = NAN;
    expect_result(c, run_semidual(c), columns, rough);
  };
  for (Distance distance : reference::kDistances) {
    check(distance, NAN);
    check(distance, 1e8f);  // far enough to cost the others their digits, were it to count
  }
}

// Nor may its costs that are NaN in places and infinite or ordinary in others.
TEST_P(TransportErrors, ASemidualStateOfWeightZeroMayBeNanInPlaces) {
  struct Drop {
    Distance distance;
    float beta, value;
  };
  for (const Drop& drop : {Drop{Distance::SquaredEuclidean, -0.5f, INFINITY},
                           {Distance::SquaredEuclidean, -0.5f, 1e25f},
                           {Distance::Cosine, 0.5f, 3e38f},
                           {Distance::Cosine, 0.5f, 2e38f}}) {
    for (int64_t n : {1, 5, 9, 15, 17, 27, 33, 67, 130}) {
      SCOPED_TRACE(n);
      Case c(n, 20, 6);
      c.distance = drop.distance, c.beta = drop.beta;
      for (size_t j = 0; j < c.q.size(); j += 2) c.q[j] = 0.f;
      c.normalise_q();
      const auto exact = semidual(c.inputs<double>());
      for (size_t j = 0; j < c.q.size(); j += 2) c.y[j * 6 + j % 6] = drop.value;
      const Outputs got = run_semidual(c);
      expect_within(got["d_a"], exact.d_a, 1e-5);
      EXPECT_TRUE(std::isfinite(got.value("loss")));
    }
  }
}

// A far state is never chosen, and costs the others none of their digits.
TEST_P(TransportErrors, AFarStateDoesNotBlurTheOthers) {
  for (const float far : {1e7f, 1e8f, 1e10f, 1e15f}) {
    for (const bool of_expert : {false, true}) {
      SCOPED_TRACE(std::to_string(far) + (of_expert ? " in y" : " in x"));
      Case c(200, 100, 16);
      (of_expert ? c.y : c.x)[5 * 16 + 3] = far;
      const auto exact = c.inputs<double>();
      const auto plain = c.inputs<float>();
      expect_result(c, run_joint(c), joint(exact), joint(plain));
      if (!of_expert) expect_result(c, run_semidual(c), semidual(exact), semidual(plain));
    }
  }
}

// An infinite cost or a potential of -inf is a pair that is never chosen.
TEST_P(TransportErrors, InfinitelyFarIsNeverChosen) {
  const float inf = std::numeric_limits<float>::infinity();
  Case c(30, 40, 3);
  c.x[26 * 3 + 1] = inf;
  c.a[11] = -inf;
  const auto exact = c.inputs<double>();
  const auto plain = c.inputs<float>();
  const Outputs got = run_joint(c), columns = run_semidual(c);
  expect_result(c, got, joint(exact), joint(plain));
  expect_result(c, columns, semidual(exact), semidual(plain));
  for (const Outputs* of : {&got, &columns}) {
    EXPECT_EQ((*of)["d_a"][26], 0.f);
    EXPECT_EQ((*of)["d_a"][11], 0.f);
  }
  c.y[5 * 3] = inf;
  const std::vector<float> lse = run_columns(c);
  EXPECT_EQ(lse[5], -inf);
  for (size_t j = 6; j < lse.size(); ++j) EXPECT_TRUE(std::isfinite(lse[j])) << j;
}

}  // namespace
}  // namespace pwdice::test
