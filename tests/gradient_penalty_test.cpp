// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/gradient_penalty.h"

#include <cmath>
#include <limits>

#include "op_case.h"
#include "reference.h"

namespace pwdice::test {
namespace {

using reference::Matrix;

class GradientPenalty : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, GradientPenalty, testing::ValuesIn(test_backends()), backend_name);

constexpr float kLambda = 10.f;

struct Shape {
  int64_t n, d, m;
  std::string text() const {
    return std::to_string(n) + " rows, " + std::to_string(d) + " inputs, " + std::to_string(m) + " hidden";
  }
};

template <class T>
struct Network {
  Matrix<T> w1, w2;
  std::vector<T> b1, b2, w3;
};

template <class T>
struct Forward {
  Matrix<T> h1, h2, v1, g;
  std::vector<T> norm;
  T loss = 0;
};

template <class T>
struct Gradients {
  Matrix<T> d_w1, d_w2;
  std::vector<T> d_b1, d_b2, d_w3;
};

template <class T>
T slope(Activation act, T y) {
  return reference::activation_slope(act, y);
}
template <class T>
T curvature(Activation act, T y) {
  return act == Activation::Tanh ? -2 * y * (1 - y * y) : T(0);
}

template <class T, class F>
Matrix<T> map(const Matrix<T>& shape, F f) {
  Matrix<T> out(shape.rows, shape.cols);
  for (int64_t i = 0; i < out.rows; ++i) {
    for (int64_t j = 0; j < out.cols; ++j) out(i, j) = f(i, j);
  }
  return out;
}

template <class T>
Forward<T> forward(const Matrix<T>& x, const Network<T>& net, Activation act) {
  Forward<T> f;
  f.h1 = reference::linear(x, net.w1, net.b1, act);
  f.h2 = reference::linear(f.h1, net.w2, net.b2, act);
  f.v1 = product(
      map(f.h2, [&](auto i, auto j) { return slope(act, f.h2(i, j)) * net.w3[static_cast<size_t>(j)]; }),
      net.w2);
  f.g = product(map(f.h1, [&](auto i, auto j) { return slope(act, f.h1(i, j)) * f.v1(i, j); }), net.w1);
  T total = 0;
  for (int64_t i = 0; i < x.rows; ++i) {
    T squares = 0;
    for (int64_t j = 0; j < x.cols; ++j) squares += f.g(i, j) * f.g(i, j);
    f.norm.push_back(std::sqrt(squares));
    total += (f.norm.back() - 1) * (f.norm.back() - 1);
  }
  f.loss = static_cast<T>(kLambda) * total / static_cast<T>(x.rows);
  return f;
}

template <class T>
std::vector<T> column_sums(const Matrix<T>& a) {
  std::vector<T> sums(static_cast<size_t>(a.cols));
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) sums[static_cast<size_t>(j)] += a(i, j);
  }
  return sums;
}

template <class T>
Matrix<T> plus(const Matrix<T>& a, const Matrix<T>& b) {
  return map(a, [&](auto i, auto j) { return a(i, j) + b(i, j); });
}

// The formulas of gradient_penalty.h.
template <class T>
Gradients<T> backward(const Matrix<T>& x, const Network<T>& net, const Forward<T>& s, Activation act) {
  const auto f1 = map(s.h1, [&](auto i, auto j) { return slope(act, s.h1(i, j)); });
  const auto f2 = map(s.h2, [&](auto i, auto j) { return slope(act, s.h2(i, j)); });
  const auto w3 = [&](int64_t j) { return net.w3[static_cast<size_t>(j)]; };
  const auto r = map(s.g, [&](auto i, auto j) {
    const T norm = s.norm[static_cast<size_t>(i)];
    return norm == 0 ? T(0) : 2 * T(kLambda) / static_cast<T>(x.rows) * (norm - 1) * s.g(i, j) / norm;
  });
  const auto u2 = map(f2, [&](auto i, auto j) { return f2(i, j) * w3(j); });
  const auto u1 = map(f1, [&](auto i, auto j) { return f1(i, j) * s.v1(i, j); });
  const auto p = product(r, transpose(net.w1));
  const auto q = map(p, [&](auto i, auto j) { return p(i, j) * f1(i, j); });
  const auto m = product(q, transpose(net.w2));
  const auto a2 = map(m, [&](auto i, auto j) { return curvature(act, s.h2(i, j)) * m(i, j) * w3(j); });
  const auto back = product(a2, net.w2);
  const auto a1 = map(back, [&](auto i, auto j) {
    return f1(i, j) * back(i, j) + curvature(act, s.h1(i, j)) * p(i, j) * s.v1(i, j);
  });
  const auto m_f2 = map(m, [&](auto i, auto j) { return m(i, j) * f2(i, j); });
  return {plus(product(transpose(u1), r), product(transpose(a1), x)),
          plus(product(transpose(u2), q), product(transpose(a2), s.h1)), column_sums(a1), column_sums(a2),
          column_sums(m_f2)};
}

struct Problem {
  Shape shape;
  Activation act;
  std::vector<float> x, w1, b1, w2, b2, w3;

  Problem(const Shape& s, Activation f, Data data = Data::Normal) : shape(s), act(f) {
    const float k1 = 1 / std::sqrt(static_cast<float>(s.d)), k2 = 1 / std::sqrt(static_cast<float>(s.m));
    x = make_data(data, s.n * s.d, 1);
    w1 = uniform(s.m * s.d, -k1, k1, 2), b1 = uniform(s.m, -k1, k1, 3);
    w2 = uniform(s.m * s.m, -k2, k2, 4), b2 = uniform(s.m, -k2, k2, 5), w3 = uniform(s.m, -1.f, 1.f, 6);
  }

  void call(OpRun& op) const {
    const auto& [n, d, m] = shape;
    gradient_penalty(
        op.ctx, {op.in(x, n, d, d + 1), op.in(w1, m, d, d + 2), op.in(w2, m, m, m + 3), op.in(b1), op.in(b2),
                 op.in(w3), act, kLambda, op.out("norm", n), op.out("loss", 1), op.out("d_w1", m, d, d + 1),
                 op.out("d_w2", m, m, m + 1), op.out("d_b1", m), op.out("d_b2", m), op.out("d_w3", m)});
  }
  size_t scratch_bytes(const Context& ctx) const {
    return gradient_penalty_scratch_bytes(ctx, shape.n, shape.d, shape.m);
  }

  template <class T>
  Network<T> network() const {
    return {{shape.m, shape.d, w1}, {shape.m, shape.m, w2}, to<T>(b1), to<T>(b2), to<T>(w3)};
  }
  template <class T>
  Forward<T> reference_forward() const {
    return forward(Matrix<T>(shape.n, shape.d, x), network<T>(), act);
  }
  template <class T>
  Gradients<T> reference_backward() const {
    return backward(Matrix<T>(shape.n, shape.d, x), network<T>(), reference_forward<T>(), act);
  }

  void compare(const Outputs& got) const {
    const auto f = reference_forward<double>();
    const auto f_plain = reference_forward<float>();
    expect_close(got["norm"], f.norm, f_plain.norm);
    expect_close(got.value("loss"), f.loss, f_plain.loss);
    const auto b = reference_backward<double>();
    const auto b_plain = reference_backward<float>();
    expect_close(got["d_w1"], b.d_w1.data, b_plain.d_w1.data);
    expect_close(got["d_w2"], b.d_w2.data, b_plain.d_w2.data);
    expect_close(got["d_b1"], b.d_b1, b_plain.d_b1);
    expect_close(got["d_b2"], b.d_b2, b_plain.d_b2);
    expect_close(got["d_w3"], b.d_w3, b_plain.d_w3);
  }
};

TEST_P(GradientPenalty, MatchesReference) {
  for (Activation act : {Activation::Tanh, Activation::Relu}) {
    for (const Shape& s : {Shape{1, 1, 1},
                           {1, 11, 16},
                           {13, 3, 7},
                           {48, 17, 40},
                           {49, 33, 33},
                           {61, 41, 37},
                           {61, 5, 120},
                           {530, 5, 35},
                           {4099, 5, 7}}) {
      SCOPED_TRACE(s.text());
      const Problem p(s, act);
      p.compare(run(p.scratch_bytes(context()), [&](OpRun& op) { p.call(op); }));
    }
  }
}

TEST(GradientPenaltyCpu, ManyThreads) {
  for (const Activation act : {Activation::Tanh, Activation::Relu}) {
    for (const Shape& s : {Shape{520, 11, 64}, {300, 40, 48}, {4100, 11, 40}}) {
      const Problem p(s, act);
      expect_same_bits_on_many_threads([&](const Context& ctx) { return p.scratch_bytes(ctx); },
                                       [&](OpRun& op) { p.call(op); });
    }
  }
}

TEST_P(GradientPenalty, MatchesReferenceOnExtremeData) {
  for (Data data : kAllData) {
    SCOPED_TRACE(name(data));
    const Problem p({29, 11, 24}, Activation::Tanh, data);
    p.compare(run(p.scratch_bytes(context()), [&](OpRun& op) { p.call(op); }));
  }
}

TEST_P(GradientPenalty, GradientsAgreeWithCentralDifferences) {
  const Problem p({7, 5, 9}, Activation::Tanh);
  const Outputs got = run(p.scratch_bytes(context()), [&](OpRun& op) { p.call(op); });
  const Matrix<double> x(7, 5, p.x);
  const auto check = [&](const char* output, const std::vector<float>& start, auto assign) {
    SCOPED_TRACE(output);
    const auto loss = [&](const std::vector<double>& values) {
      auto net = p.network<double>();
      assign(net, values);
      return forward(x, net, p.act).loss;
    };
    expect_gradient(got[output], loss, to<double>(start), 1e-4, 100);
  };
  check("d_w1", p.w1, [](auto& net, const auto& v) { net.w1.data = v; });
  check("d_w2", p.w2, [](auto& net, const auto& v) { net.w2.data = v; });
  check("d_b1", p.b1, [](auto& net, const auto& v) { net.b1 = v; });
  check("d_b2", p.b2, [](auto& net, const auto& v) { net.b2 = v; });
  check("d_w3", p.w3, [](auto& net, const auto& v) { net.w3 = v; });
}

TEST_P(GradientPenalty, ZeroGradientHasPenaltyLambdaAndNoDerivative) {
  Problem p({5, 4, 6}, Activation::Tanh);
  p.w3.assign(6, 0.f);
  const Outputs got = run(p.scratch_bytes(context()), [&](OpRun& op) { p.call(op); });
  EXPECT_EQ(got.value("loss"), kLambda);
  for (const char* output : {"d_w1", "d_w2", "d_b1", "d_b2", "d_w3"}) {
    for (float v : got[output]) EXPECT_EQ(v, 0.f) << output;
  }
}

TEST_P(GradientPenalty, NamesAValueThatIsNan) {
  struct Field {
    std::string name, where;
    std::vector<float> Problem::*values;
  };
  const Field fields[] = {{"x", "0, column 3", &Problem::x}, {"w1", "0, column 3", &Problem::w1},
                          {"b1", "3", &Problem::b1},         {"w2", "0, column 3", &Problem::w2},
                          {"b2", "3", &Problem::b2},         {"w3", "3", &Problem::w3}};
  const auto check = [&](const Field& field, Activation act) {
    SCOPED_TRACE(field.name);
    Problem p({5, 4, 6}, act);
    (p.*field.values)[3] = std::numeric_limits<float>::quiet_NaN();
    const auto penalty = [&] { return run(p.scratch_bytes(context()), [&](OpRun& op) { p.call(op); }); };
    if (GetParam() == Backend::Cpu) {
      expect_error(ErrorCode::NotFinite, "gradient_penalty: " + field.name + " is nan in row " + field.where,
                   [&] { penalty(); });
    } else {  // a GPU is not read back; there the guard of adam protects
      const Outputs got = penalty();
      EXPECT_TRUE(std::isnan(got.value("loss")));
    }
  };
  for (const Field& field : fields) {
    for (const Activation act : {Activation::Tanh, Activation::Relu}) check(field, act);
  }
}

TEST_P(GradientPenalty, TooLittleScratchLeavesTheOutputs) {
  const Problem p({61, 5, 40}, Activation::Tanh);
  const size_t enough = p.scratch_bytes(context());
  for (size_t bytes : {size_t{0}, size_t{4096}, enough / 2}) {
    if (GetParam() != Backend::Cpu && bytes > 4096) continue;  // a GPU takes what a product needs only then
    expect_too_little_scratch(context(), "gradient_penalty", bytes, [&](OpRun& op) { p.call(op); });
  }
}

TEST_P(GradientPenalty, RefusesWrongShapes) {
  const Problem good({5, 4, 6}, Activation::Tanh);
  const auto refuse = [&](const std::string& part, const Problem& p) {
    expect_error(ErrorCode::InvalidArgument, part, [&] {
      OpRun op(context(), 0);
      p.call(op);
    });
  };
  Problem bad = good;
  bad.act = Activation::None;
  refuse("gradient_penalty: the activation is neither Tanh nor Relu", bad);
  bad = good;
  bad.w3.pop_back();
  refuse("gradient_penalty: w3 has 5 values, expected 6", bad);
  bad = good;
  bad.b2.push_back(1.f);
  refuse("gradient_penalty: b2 has 7 values, expected 6", bad);
  refuse("gradient_penalty: x is 0 x 4", Problem({0, 4, 6}, Activation::Tanh));
}

}  // namespace
}  // namespace pwdice::test
