// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// A transport problem and its runs through each op, for transport_test.cpp and transport_errors_test.cpp.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../kernels/transport.h"
#include "op_case.h"
#include "transport_reference.h"

namespace pwdice::test {

inline constexpr Divergence kChi2s[] = {Divergence::Chi2, Divergence::Chi2Exact};

struct TransportProblem {
  int64_t n, m, d;
  Distance distance = Distance::SquaredEuclidean;
  float beta = 2.f, eps = 0.5f;
  std::vector<float> x, y, reward, a, b, q;

  TransportProblem(int64_t rows, int64_t cols, int64_t width) : n(rows), m(cols), d(width) {
    x = normal(n * d, 1), y = normal(m * d, 2), reward = normal(n, 3), a = normal(n, 4), b = normal(m, 5);
    q = uniform(m, 0.1f, 1.f, 6);
    normalise_q();
  }
  void normalise_q() {
    const double sum = std::accumulate(q.begin(), q.end(), 0.0);
    for (float& v : q) v = static_cast<float>(v / sum);
  }
  TransportProblem& with(float scale_beta, float new_eps) { return beta = scale_beta, eps = new_eps, *this; }
  TransportProblem& on_sphere() {
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
  reference::TransportInputs<T> inputs() const {
    return {reference::cost_matrix(distance, static_cast<T>(beta), reference::Matrix<T>(n, d, x),
                                   reference::Matrix<T>(m, d, y), to<T>(reward)),
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

// What a rounding of the parts of the largest exponent does to p, several times over: better than that is luck. A pair
// that is small beside another one in its row has no say, nor has one of weight zero.
inline double exponent_rounding(const TransportProblem& c) {
  constexpr double kSmall = 16;  // exp(-16) is the rounding of a sum
  const auto in = c.inputs<double>();
  double largest = 0, of_all = 0;
  for (int64_t i = 0; i < c.n; ++i) {
    std::vector<double> y, parts;
    for (int64_t j = 0; j < c.m; ++j) {
      const double a = in.a[size_t(i)], b = in.b[size_t(j)], cost = in.c(i, j);
      if (!std::isfinite(a + b - cost)) continue;
      of_all = std::max(of_all, std::abs(a + b - cost) / in.eps);
      if (in.q[size_t(j)] == 0) continue;
      y.push_back((a + b - cost) / in.eps);
      parts.push_back((std::abs(a) + std::abs(b) + std::abs(cost)) / in.eps);
    }
    const double top = y.empty() ? 0 : *std::max_element(y.begin(), y.end());
    for (size_t k = 0; k < y.size(); ++k) {
      if (y[k] >= top - kSmall) largest = std::max(largest, parts[k]);
    }
  }
  return 4 * 0x1p-24 * std::min(largest, of_all);
}

inline void expect_near(const std::vector<float>& got, const std::vector<double>& want,
                        const std::vector<float>& plain, double rtol) {
  ASSERT_EQ(got.size(), want.size());
  double scale = 0;
  for (double v : want) scale = std::max(scale, std::abs(v));
  bool near = true;  // a maximum of the errors would pass over NaN
  for (size_t i = 0; i < want.size(); ++i)
    near = near && std::abs(static_cast<double>(got[i]) - want[i]) <= rtol * scale;
  if (!near) expect_close(got, want, plain);
}

inline void expect_result(const TransportProblem& c, const Outputs& got,
                          const reference::TransportResult<double>& exact,
                          const reference::TransportResult<float>& plain) {
  const double rtol = exponent_rounding(c);
  expect_close(got.value("loss"), exact.loss, plain.loss);
  expect_near(got["d_a"], exact.d_a, plain.d_a, rtol);
  if (!exact.d_b.empty()) expect_near(got["d_b"], exact.d_b, plain.d_b, rtol);
  if (!exact.col_lse.empty()) expect_close(got["col_lse"], exact.col_lse, plain.col_lse);
}

// -- each op on a problem, outputs under the names of its contract ------------------------------------------

inline void call_joint(OpRun& op, const TransportProblem& c) {
  transport_joint(op.ctx, {c.cost(op), op.in(c.a), op.in(c.b), op.in(c.q), c.eps, op.out("loss", 1),
                           op.out("d_a", c.n), op.out("d_b", c.m)});
}
inline void call_semidual(OpRun& op, const TransportProblem& c) {
  transport_semidual(op.ctx, {c.cost(op), op.in(c.a), op.in(c.q), c.eps, op.out("loss", 1),
                              op.out("d_a", c.n), op.out("col_lse", c.m)});
}
inline void call_chi2(OpRun& op, const TransportProblem& c, Divergence divergence = Divergence::Chi2) {
  transport_chi2(op.ctx, {c.cost(op), op.in(c.a), op.in(c.b), op.in(c.q), c.eps, divergence,
                          op.out("loss", 1), op.out("d_a", c.n), op.out("d_b", c.m)});
}
inline void call_paired(OpRun& op, const TransportProblem& c, Divergence divergence = Divergence::Kl) {
  transport_paired(op.ctx, {c.cost(op), op.in(c.a), op.in(c.b), c.eps, divergence, op.out("loss", 1),
                            op.out("d_a", c.n), op.out("d_b", c.n)});
}
inline void call_columns(OpRun& op, const TransportProblem& c) {
  column_lse(op.ctx, {c.cost(op), op.in(c.a), c.eps, op.out("col_lse", c.m)});
}

// All of them, for what they have in common.
struct TransportTerm {
  std::string name;
  bool with_b, with_q;  // what it takes besides cost and a
  std::function<void(OpRun&, const TransportProblem&)> call;
};
inline std::vector<TransportTerm> transport_terms() {
  return {{"transport_joint", true, true, call_joint},
          {"transport_semidual", false, true, call_semidual},
          {"transport_chi2", true, true, [](OpRun& op, const TransportProblem& c) { call_chi2(op, c); }},
          {"transport_paired", true, false, [](OpRun& op, const TransportProblem& c) { call_paired(op, c); }},
          {"column_lse", false, false, call_columns}};
}

class TransportCase : public OpTest {
 protected:
  using Problem = TransportProblem;

  size_t scratch(const Problem& c) { return transport_scratch_bytes(context(), c.n, c.m, c.d); }
  Outputs run_term(const TransportTerm& term, const Problem& c) {
    return run(scratch(c), [&](OpRun& op) { term.call(op, c); });
  }
  Outputs run_joint(const Problem& c) {
    return run(scratch(c), [&](OpRun& op) { call_joint(op, c); });
  }
  Outputs run_semidual(const Problem& c) {
    return run(scratch(c), [&](OpRun& op) { call_semidual(op, c); });
  }
  Outputs run_chi2(const Problem& c, Divergence divergence) {
    return run(scratch(c), [&](OpRun& op) { call_chi2(op, c, divergence); });
  }
  Outputs run_paired(const Problem& c, Divergence divergence) {
    return run(scratch(c), [&](OpRun& op) { call_paired(op, c, divergence); });
  }
  std::vector<float> run_columns(const Problem& c) {
    const size_t bytes = column_lse_scratch_bytes(context(), c.n, c.m, c.d);
    return run(bytes, [&](OpRun& op) { call_columns(op, c); })["col_lse"];
  }
  // Every all-pairs op on one case.
  void check(const Problem& c) {
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

}  // namespace pwdice::test
