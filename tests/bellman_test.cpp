// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/bellman.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "op_case.h"
#include "reference.h"

namespace pwdice::test {
namespace {

class BellmanOp : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, BellmanOp, testing::ValuesIn(test_backends()), backend_name);

constexpr Divergence kDivergences[] = {Divergence::Kl, Divergence::Chi2, Divergence::Chi2Exact};

template <class T>
struct Inputs {
  std::vector<T> v, v_next, u, discount, v_init;
  T init_weight = T(0.002f), eps = T(0.5f);
};

template <class T>
struct Result {
  T loss = 0;
  std::vector<T> y, d_v, d_v_next, d_u;
};

template <class T>
Result<T> bellman_term(const Inputs<T>& in, Divergence divergence) {
  Result<T> r;
  const size_t n = in.v.size();
  for (size_t i = 0; i < n; ++i) r.y.push_back((in.v[i] - in.discount[i] * in.v_next[i] - in.u[i]) / in.eps);
  const T lse = reference::logsumexp(r.y), count = static_cast<T>(n);
  T mean = 0;
  for (T y : r.y) {
    T t = y + 1;
    if (divergence == Divergence::Chi2Exact) t = std::max(t, T(0));
    mean += (divergence == Divergence::Chi2Exact ? t * t / 2 - T(0.5) : t * t / 2) / count;
    r.d_v.push_back(divergence == Divergence::Kl ? std::exp(y - lse) : t / count);
  }
  r.loss = in.eps * (divergence == Divergence::Kl ? lse - std::log(count) : mean);
  r.loss -= in.init_weight * reference::sum(in.v_init) / static_cast<T>(in.v_init.size());
  for (size_t i = 0; i < n; ++i) {
    r.d_v_next.push_back(-in.discount[i] * r.d_v[i]);
    r.d_u.push_back(-r.d_v[i]);
  }
  return r;
}

Inputs<float> make(int64_t n, int64_t k, Data data, float eps) {
  Inputs<float> in;
  in.v = make_data(data, n, 1), in.v_next = make_data(data, n, 2), in.u = make_data(data, n, 3);
  in.discount.assign(static_cast<size_t>(n), 0.998f);
  for (size_t i = 0; i < in.discount.size(); i += 5) in.discount[i] = 0.f;  // terminal
  in.v_init = normal(k, 4);
  in.eps = eps;
  return in;
}

template <class T>
Inputs<T> as(const Inputs<float>& in) {
  return {to<T>(in.v),      to<T>(in.v_next),  to<T>(in.u), to<T>(in.discount),
          to<T>(in.v_init), T(in.init_weight), T(in.eps)};
}

void call(OpRun& op, const Inputs<float>& in, Divergence divergence) {
  const auto n = static_cast<int64_t>(in.v.size()), k = static_cast<int64_t>(in.v_init.size());
  bellman(op.ctx, {op.in(in.v), op.in(in.v_next), op.in(in.u), op.in(in.discount), op.in(in.v_init),
                   in.init_weight, in.eps, divergence, op.out("loss", 1), op.out("d_v", n),
                   op.out("d_v_next", n), op.out("d_u", n), op.out("d_v_init", k)});
}

TEST_P(BellmanOp, MatchesReference) {
  for (int64_t n : {1, 2, 13, 1024, 8191, 8193, 20011}) {
    for (Divergence divergence : kDivergences) {
      for (Data data : {Data::Normal, Data::Tiny, Data::Equal}) {
        SCOPED_TRACE(std::to_string(n) + ", divergence " + std::to_string(static_cast<int>(divergence)) +
                     name(data));
        const Inputs<float> in = make(n, 7, data, 0.5f);
        const auto exact = bellman_term(as<double>(in), divergence);
        const auto plain = bellman_term(in, divergence);
        const Outputs got = run(bellman_scratch_bytes(n), [&](OpRun& op) { call(op, in, divergence); });
        expect_close(got.value("loss"), exact.loss, plain.loss);
        expect_close(got["d_v"], exact.d_v, plain.d_v);
        expect_close(got["d_v_next"], exact.d_v_next, plain.d_v_next);
        expect_close(got["d_u"], exact.d_u, plain.d_u);
        expect_within(got["d_v_init"], std::vector<double>(7, -static_cast<double>(in.init_weight) / 7),
                      1e-6);
      }
    }
  }
}

TEST_P(BellmanOp, HugeExponentsStayFinite) {
  for (float eps : {0.5f, 0.01f}) {
    const Inputs<float> in = make(300, 1, Data::Huge, eps);
    const auto exact = bellman_term(as<double>(in), Divergence::Kl);
    const auto plain = bellman_term(in, Divergence::Kl);
    const Outputs got = run(bellman_scratch_bytes(300), [&](OpRun& op) { call(op, in, Divergence::Kl); });
    expect_close(got.value("loss"), exact.loss, plain.loss);
    expect_close(got["d_v"], exact.d_v, plain.d_v);
  }
}

TEST_P(BellmanOp, GradientsAgreeWithCentralDifferences) {
  for (Divergence divergence : kDivergences) {
    const Inputs<float> in = make(11, 3, Data::Normal, 0.5f);
    const Outputs got = run(bellman_scratch_bytes(11), [&](OpRun& op) { call(op, in, divergence); });
    const Inputs<double> base = as<double>(in);
    const auto along = [&](std::vector<double> Inputs<double>::*field) {
      return [&, field](const std::vector<double>& x) {
        Inputs<double> moved = base;
        moved.*field = x;
        return bellman_term(moved, divergence).loss;
      };
    };
    expect_gradient(got["d_v"], along(&Inputs<double>::v), base.v);
    expect_gradient(got["d_v_next"], along(&Inputs<double>::v_next), base.v_next);
    expect_gradient(got["d_u"], along(&Inputs<double>::u), base.u);
    expect_gradient(got["d_v_init"], along(&Inputs<double>::v_init), base.v_init);
  }
}

// A constant added to u moves every y by the same amount: L moves by exactly that constant, p not at all.
TEST_P(BellmanOp, ConstantShiftsOfThePotentialMoveTheLossAlone) {
  Inputs<float> in = make(5000, 1, Data::Normal, 0.25f);
  const auto evaluate = [&] {
    return run(bellman_scratch_bytes(5000), [&](OpRun& op) { call(op, in, Divergence::Kl); });
  };
  const Outputs before = evaluate();
  for (float& u : in.u) u += 2.f;
  const Outputs after = evaluate();
  EXPECT_NEAR(before.value("loss") - after.value("loss"), 2.0, 1e-5);
  const std::vector<float> p = after["d_v"];
  EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1.0, 1e-6);
  expect_within(p, to(before["d_v"]), 1e-5);
}

TEST_P(BellmanOp, ResidualMatchesReference) {
  for (int64_t n : {0, 1, 7, 8193}) {
    const Inputs<float> in = make(n, 1, Data::Normal, 0.01f);
    const Outputs got = run(0, [&](OpRun& op) {
      bellman_residual(
          op.ctx, {op.in(in.v), op.in(in.v_next), op.in(in.u), op.in(in.discount), in.eps, op.out("y", n)});
    });
    if (n > 0) {
      expect_close(got["y"], bellman_term(as<double>(in), Divergence::Chi2).y,
                   bellman_term(in, Divergence::Chi2).y);
    }
  }
}

TEST_P(BellmanOp, ResidualNamesAValueThatIsNan) {
  const std::pair<const char*, std::vector<float> Inputs<float>::*> fields[] = {
      {"v", &Inputs<float>::v},
      {"v_next", &Inputs<float>::v_next},
      {"u", &Inputs<float>::u},
      {"discount", &Inputs<float>::discount}};
  for (const auto& [field, values] : fields) {
    SCOPED_TRACE(field);
    Inputs<float> in = make(9001, 1, Data::Normal, 0.5f);
    (in.*values)[8999] = NAN;
    const auto residual = [&] {
      return run(0, [&](OpRun& op) {
        bellman_residual(op.ctx, {op.in(in.v), op.in(in.v_next), op.in(in.u), op.in(in.discount), in.eps,
                                  op.out("y", 9001)});
      })["y"];
    };
    if (GetParam() == Backend::Cpu) {
      expect_error(ErrorCode::NotFinite, std::string("bellman_residual: ") + field + " is nan in row 8999",
                   [&] { residual(); });
    } else {  // a GPU is not read back
      const std::vector<float> y = residual();
      for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i == 8999) << i;
    }
  }
}

template <class T>
std::vector<T> weights(const std::vector<T>& y, Divergence divergence) {
  std::vector<T> w;
  const T max = *std::max_element(y.begin(), y.end()),
          add = divergence == Divergence::Chi2Exact ? T(1) : T(0);
  for (T v : y) {
    if (divergence == Divergence::Kl) {
      w.push_back(std::exp(v - max));
    } else {
      w.push_back(max + add > 0 ? std::max(v + add, T(0)) / (max + add) : T(0));
    }
  }
  return w;
}

TEST_P(BellmanOp, PolicyWeightsHaveMaximumOne) {
  for (int64_t n : {1, 13, 8192, 30001}) {
    for (Divergence divergence : kDivergences) {
      const auto y = normal(n, 9);
      const Outputs got = run(bellman_scratch_bytes(n), [&](OpRun& op) {
        policy_weights(op.ctx, {op.in(y), divergence, op.out("w", n)});
      });
      expect_close(got["w"], weights(to(y), divergence), weights(y, divergence));
    }
  }
}

TEST_P(BellmanOp, PolicyWeightsInPlaceAndWithoutOverflow) {
  const std::vector<float> y = {1e4f, -1e4f, 9.999e3f, 0.f};
  const Outputs got = run(bellman_scratch_bytes(4), [&](OpRun& op) {
    const Vec<float> w = op.in_out("w", y);
    policy_weights(op.ctx, {w, Divergence::Kl, w});
  });
  expect_within(got["w"], {1.0, 0.0, std::exp(-1.0), 0.0}, 1e-6);
}

TEST_P(BellmanOp, PolicyWeightsAreZeroWhenNothingIsPositive) {
  const std::vector<float> y = {-3.f, -2.f, -1.5f};
  for (Divergence divergence : {Divergence::Chi2, Divergence::Chi2Exact}) {
    const Outputs got = run(bellman_scratch_bytes(3), [&](OpRun& op) {
      policy_weights(op.ctx, {op.in(y), divergence, op.out("w", 3)});
    });
    expect_equal(got["w"], std::vector<float>(3, 0.f));
  }
}

TEST_P(BellmanOp, NoPolicyWeightsOfNothing) {
  for (Divergence divergence : kDivergences) {
    const Outputs got = run(bellman_scratch_bytes(0), [&](OpRun& op) {
      policy_weights(op.ctx, {op.in(std::vector<float>()), divergence, op.out("w", 0)});
    });
    EXPECT_TRUE(got["w"].empty());
  }
}

TEST_P(BellmanOp, RejectsWhatItCannotDo) {
  const auto attempt = [&](const Inputs<float>& in) {
    run(1 << 12, [&](OpRun& op) { call(op, in, Divergence::Kl); });
  };
  expect_error(ErrorCode::InvalidArgument, "bellman: 0 transitions",
               [&] { attempt(make(0, 1, Data::Normal, 0.5f)); });
  expect_error(ErrorCode::InvalidArgument, "0 initial states",
               [&] { attempt(make(3, 0, Data::Normal, 0.5f)); });
  expect_error(ErrorCode::InvalidArgument, "eps is 0", [&] { attempt(make(3, 1, Data::Normal, 0.f)); });
  expect_error(ErrorCode::InvalidArgument, "eps is -1", [&] { attempt(make(3, 1, Data::Normal, -1.f)); });
  expect_error(ErrorCode::InvalidArgument, "eps is nan", [&] { attempt(make(3, 1, Data::Normal, NAN)); });
  Inputs<float> in = make(3, 1, Data::Normal, 0.5f);
  const auto no_divergence = static_cast<Divergence>(-1);
  expect_error(ErrorCode::InvalidArgument, "bellman: divergence is -1, expected 0 to 2",
               [&] { run(1 << 12, [&](OpRun& op) { call(op, in, no_divergence); }); });
  expect_error(ErrorCode::InvalidArgument, "policy_weights: divergence is -1, expected 0 to 2", [&] {
    run(1 << 12, [&](OpRun& op) { policy_weights(op.ctx, {op.in(in.v), no_divergence, op.out("w", 3)}); });
  });
  expect_error(ErrorCode::InvalidArgument, "bellman_scratch_bytes: the number of transitions is -1",
               [] { bellman_scratch_bytes(-1); });
  in.u.pop_back();
  expect_error(ErrorCode::InvalidArgument, "bellman: u has 2 values, expected 3", [&] { attempt(in); });
  in.u = in.v;
  for (const float eps : {0.f, -1.f, NAN, INFINITY}) {
    expect_error(ErrorCode::InvalidArgument, "bellman_residual: eps is", [&] {
      run(0, [&](OpRun& op) {
        bellman_residual(
            op.ctx, {op.in(in.v), op.in(in.v_next), op.in(in.u), op.in(in.discount), eps, op.out("y", 3)});
      });
    });
  }
  expect_error(ErrorCode::InvalidArgument, "policy_weights: w has 2 values, expected 3", [&] {
    run(1 << 12, [&](OpRun& op) { policy_weights(op.ctx, {op.in(in.v), Divergence::Kl, op.out("w", 2)}); });
  });
}

TEST_P(BellmanOp, NamesAValueThatIsNotFinite) {
  if (GetParam() != Backend::Cpu) return;  // a GPU is not read back; there the guard of adam protects
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (Divergence divergence : kDivergences) {
      Inputs<float> in = make(9000, 2, Data::Normal, 0.5f);
      in.v_next[8200 + 3] = bad;
      in.discount[8200 + 3] = 0.5f;
      if (bad > 0 && divergence != Divergence::Chi2) {  // y = -inf: p = 0
        const Outputs got = run(bellman_scratch_bytes(9000), [&](OpRun& op) { call(op, in, divergence); });
        EXPECT_TRUE(std::isfinite(got.value("loss")));
        for (const char* d : {"d_v", "d_v_next", "d_u"}) EXPECT_EQ(got[d][8203], 0.f) << d;
        continue;
      }
      expect_error(ErrorCode::NotFinite, "bellman: v_next is",
                   [&] { run(bellman_scratch_bytes(9000), [&](OpRun& op) { call(op, in, divergence); }); });
    }
    const std::vector<float> y = {0.f, bad, 1.f};
    for (Divergence divergence : kDivergences) {
      expect_error(ErrorCode::NotFinite, "policy_weights: the largest y is", [&] {
        run(bellman_scratch_bytes(3), [&](OpRun& op) {
          policy_weights(op.ctx, {op.in(y), divergence, op.out("w", 3)});
        });
      });
      Inputs<float> in = make(20, 2, Data::Normal, 0.5f);
      in.discount[7] = bad, in.v_next[7] = 1.f;
      expect_error(ErrorCode::NotFinite, "bellman: discount is ",
                   [&] { run(1 << 12, [&](OpRun& op) { call(op, in, divergence); }); });
      in = make(20, 2, Data::Normal, 0.5f), in.init_weight = bad;
      expect_error(ErrorCode::InvalidArgument, "bellman: init_weight is ",
                   [&] { run(1 << 12, [&](OpRun& op) { call(op, in, divergence); }); });
    }
  }
}

}  // namespace
}  // namespace pwdice::test
