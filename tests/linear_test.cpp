// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../kernels/linear.h"

#include <cmath>
#include <limits>

#include "op_case.h"
#include "reference.h"
#include "simd_targets.h"

namespace pwdice::test {
namespace {

using reference::Matrix;

class Linear : public OpTest {};
INSTANTIATE_TEST_SUITE_P(, Linear, testing::ValuesIn(test_backends()), backend_name);

constexpr Activation kActivations[] = {Activation::None, Activation::Relu, Activation::Tanh};

struct Shape {
  int64_t n, in, out;
  std::string text() const {
    return std::to_string(n) + " rows, " + std::to_string(in) + " in, " + std::to_string(out) + " out";
  }
};

// Around the register tiles (6 x 16, 14 x 32, 12 x 8), the narrow path of weight gradients (32), the dot
// products of heads (8) and of few rows (4), a block of k (256) and of packed rows (512).
std::vector<Shape> shapes() {
  std::vector<Shape> list;
  for (int64_t n : {0, 1, 4, 5, 13, 14, 49}) {
    for (int64_t in : {1, 11, 16, 33}) {
      for (int64_t out : {1, 3, 8, 9, 17, 32, 35}) list.push_back({n, in, out});
    }
  }
  for (const Shape& s : {Shape{57, 256, 31},
                         {57, 257, 33},
                         {7, 300, 64},
                         {512, 40, 41},
                         {513, 37, 47},
                         {1100, 5, 70},
                         {1100, 70, 5},
                         {1030, 96, 33}}) {
    list.push_back(s);
  }
  return list;
}

template <class T>
struct Gradients {
  Matrix<T> d_x, d_w;
  std::vector<T> d_b;
};

// d_pre as given; x was made by x_act.
template <class T>
Gradients<T> backward(const Matrix<T>& x, const Matrix<T>& w, const Matrix<T>& d_pre, Activation x_act) {
  Gradients<T> g{product(d_pre, w), product(transpose(d_pre), x),
                 std::vector<T>(static_cast<size_t>(w.rows))};
  for (size_t i = 0; i < g.d_x.data.size(); ++i)
    g.d_x.data[i] *= reference::activation_slope(x_act, x.data[i]);
  for (int64_t i = 0; i < d_pre.rows; ++i) {
    for (int64_t j = 0; j < d_pre.cols; ++j) g.d_b[static_cast<size_t>(j)] += d_pre(i, j);
  }
  return g;
}

struct Problem {
  Shape shape;
  Activation act;
  std::vector<float> x, w, b, d_pre;

  Problem(const Shape& s, Activation f, Data data) : shape(s), act(f) {
    x = make_data(data, s.n * s.in, 1), w = normal(s.out * s.in, 2), b = normal(s.out, 3);
    d_pre = normal(s.n * s.out, 4);
    for (float& v : w) v /= std::sqrt(static_cast<float>(s.in));
  }

  // All three ops, every matrix with a stride of its own.
  void call(OpRun& op) const {
    const auto& [n, in, out] = shape;
    const Mat<const float> x_view = op.in(x, n, in, in + 3), w_view = op.in(w, out, in, in + 1);
    const Mat<const float> d_view = op.in(d_pre, n, out, out + 2);
    linear_forward(op.ctx, {x_view, w_view, op.in(b), act, op.out("y", n, out, out + 5)});
    linear_backward_input(op.ctx, {d_view, w_view, x_view, act, op.out("d_x", n, in, in + 4)});
    linear_backward_params(op.ctx, {d_view, x_view, op.out("d_w", out, in, in + 2), op.out("d_b", out)});
  }

  size_t scratch_bytes() const { return linear_scratch_bytes(shape.n, shape.in, shape.out); }

  template <class T>
  Matrix<T> forward() const {
    const Matrix<T> x_t(shape.n, shape.in, x), w_t(shape.out, shape.in, w);
    return reference::linear(x_t, w_t, to<T>(b), act);
  }
  template <class T>
  Gradients<T> gradients() const {
    return backward(Matrix<T>(shape.n, shape.in, x), Matrix<T>(shape.out, shape.in, w),
                    Matrix<T>(shape.n, shape.out, d_pre), act);
  }

  // Of a tanh of huge sums only the few that nearly cancel are not +-1, and their error is a matter of luck:
  // hence the a-priori bound in u sum |x| |w| of the sum, which tanh does not enlarge.
  double cancellation_bound() const {
    Matrix<double> x_abs(shape.n, shape.in, x), w_abs(shape.out, shape.in, w);
    for (double& v : x_abs.data) v = std::abs(v);
    for (double& v : w_abs.data) v = std::abs(v);
    double largest = 0;
    for (double v : product(x_abs, transpose(w_abs)).data) largest = std::max(largest, v);
    return static_cast<double>(shape.in) * 0x1p-24 * largest;
  }

  void compare(const Outputs& got, Data data = Data::Normal) const {
    if (act == Activation::Tanh && data == Data::Huge) {
      expect_within(got["y"], forward<double>().data, 0, cancellation_bound());
    } else {
      expect_close(got["y"], forward<double>().data, forward<float>().data);
    }
    const auto exact = gradients<double>();
    const auto plain = gradients<float>();
    expect_close(got["d_x"], exact.d_x.data, plain.d_x.data);
    expect_close(got["d_w"], exact.d_w.data, plain.d_w.data);
    expect_close(got["d_b"], exact.d_b, plain.d_b);
  }
};

TEST_P(Linear, MatchesReferenceOnEveryShape) {
  int turn = 0;
  for (const Shape& s : shapes()) {
    SCOPED_TRACE(s.text());
    const Problem problem(s, kActivations[turn++ % 3], Data::Normal);
    problem.compare(run(problem.scratch_bytes(), [&](OpRun& op) { problem.call(op); }));
  }
}

TEST_P(Linear, MatchesReferenceOnEveryActivationAndData) {
  for (Activation act : kActivations) {
    for (Data data : kAllData) {
      for (const Shape& s : {Shape{61, 17, 40}, Shape{61, 40, 6}, Shape{2, 40, 50}}) {
        SCOPED_TRACE(s.text() + ", " + name(data));
        const Problem problem(s, act, data);
        problem.compare(run(problem.scratch_bytes(), [&](OpRun& op) { problem.call(op); }), data);
      }
    }
  }
}

TEST_P(Linear, LayersOfTheMethodMatchReference) {
  for (const Shape& s :
       {Shape{200, 11, 256}, Shape{200, 256, 256}, Shape{200, 256, 1}, Shape{200, 111, 256}}) {
    SCOPED_TRACE(s.text());
    const Problem problem(s, Activation::Tanh, Data::Normal);
    problem.compare(run(problem.scratch_bytes(), [&](OpRun& op) { problem.call(op); }));
  }
}

// More chunks of rows than the grid of a GPU has blocks for: they stride.
TEST_P(Linear, HeadOfManyRows) {
  const Shape s{1030 * 256 + 3, 1, 1};
  const Problem p(s, Activation::None, Data::Normal);
  OpRun op(context(), 0);
  linear_backward_params(op.ctx,
                         {op.in(p.d_pre, s.n, 1), op.in(p.x, s.n, 1), op.out("d_w", 1, 1), op.out("d_b", 1)});
  const Outputs got = op.finish();
  double d_w = 0, d_b = 0;
  for (size_t i = 0; i < p.x.size(); ++i) {
    d_w += static_cast<double>(p.d_pre[i]) * static_cast<double>(p.x[i]);
    d_b += static_cast<double>(p.d_pre[i]);
  }
  expect_within(got.value("d_w"), d_w, 1e-5, 0.02);
  expect_within(got.value("d_b"), d_b, 1e-5, 0.02);
}

TEST_P(Linear, GradientsAgreeWithCentralDifferences) {
  const Shape s{9, 13, 11};
  for (Activation act : kActivations) {
    const Problem p(s, act, Data::Normal);
    const std::vector<float> c = normal(s.n * s.out, 9);
    // L = <c, f(x W^T + b)>: d_pre = c f'.
    const auto loss = [&](const Matrix<double>& x, const Matrix<double>& w, const std::vector<double>& b) {
      return reference::dot(reference::linear(x, w, b, act).data, to<double>(c));
    };
    const Matrix<double> x(s.n, s.in, p.x), w(s.out, s.in, p.w);
    std::vector<float> d_pre = c;
    const auto y = p.forward<double>();
    for (size_t i = 0; i < c.size(); ++i) {
      d_pre[i] = static_cast<float>(c[i] * reference::activation_slope(act, y.data[i]));
    }
    const Outputs got = run(p.scratch_bytes(), [&](OpRun& op) {
      const Mat<const float> d = op.in(d_pre, s.n, s.out), x_view = op.in(p.x, s.n, s.in);
      linear_backward_input(op.ctx,
                            {d, op.in(p.w, s.out, s.in), x_view, Activation::None, op.out("d_x", s.n, s.in)});
      linear_backward_params(op.ctx, {d, x_view, op.out("d_w", s.out, s.in), op.out("d_b", s.out)});
    });
    const auto with_x = [&](const std::vector<double>& v) {
      return loss({s.n, s.in, v}, w, to<double>(p.b));
    };
    const auto with_w = [&](const std::vector<double>& v) {
      return loss(x, {s.out, s.in, v}, to<double>(p.b));
    };
    const auto with_b = [&](const std::vector<double>& v) { return loss(x, w, v); };
    expect_gradient(got["d_x"], with_x, to<double>(p.x));
    expect_gradient(got["d_w"], with_w, to<double>(p.w));
    expect_gradient(got["d_b"], with_b, to<double>(p.b));
  }
}

TEST_P(Linear, NanStaysInItsRow) {
  for (int64_t out : {2, 40}) {
    const Shape s{29, 17, out};
    for (Activation act : kActivations) {
      Problem p(s, act, Data::Normal);
      p.x[static_cast<size_t>(5 * s.in + 7)] = std::numeric_limits<float>::quiet_NaN();
      const Outputs got = run(p.scratch_bytes(), [&](OpRun& op) { p.call(op); });
      const std::vector<float> y = got["y"], d_w = got["d_w"];
      for (int64_t i = 0; i < s.n; ++i) {
        for (int64_t j = 0; j < out; ++j) EXPECT_EQ(std::isnan(y[static_cast<size_t>(i * out + j)]), i == 5);
      }
      for (int64_t i = 0; i < out; ++i) {
        for (int64_t j = 0; j < s.in; ++j)
          EXPECT_EQ(std::isnan(d_w[static_cast<size_t>(i * s.in + j)]), j == 7);
      }
    }
  }
}

TEST_P(Linear, ReluPassesNothingWhereItIsOff) {
  const std::vector<float> x{-0.f, 0.f, 1e-30f, 2.f}, w(4, 1.f),
      d_pre{std::numeric_limits<float>::infinity()};
  const Outputs got = run(linear_scratch_bytes(1, 4, 1), [&](OpRun& op) {
    const Mat<const float> x_view = op.in(x, 1, 4);
    linear_backward_input(
        op.ctx, {op.in(d_pre, 1, 1), op.in(w, 1, 4), x_view, Activation::Relu, op.out("d_x", 1, 4)});
  });
  const float inf = std::numeric_limits<float>::infinity();
  expect_equal(got["d_x"], {0.f, 0.f, inf, inf});
}

TEST_P(Linear, InputGradientMayTakeThePlaceOfTheInput) {
  for (const Shape& s : {Shape{61, 40, 3}, Shape{61, 33, 40}, Shape{200, 256, 256}}) {
    const Problem p(s, Activation::Tanh, Data::Normal);
    const Outputs got = run(p.scratch_bytes(), [&](OpRun& op) {
      const Mat<float> x = op.in_out("x", p.x, s.n, s.in);
      linear_backward_input(op.ctx,
                            {op.in(p.d_pre, s.n, s.out), op.in(p.w, s.out, s.in), x, Activation::Tanh, x});
    });
    expect_close(got["x"], p.gradients<double>().d_x.data, p.gradients<float>().d_x.data);
  }
}

TEST_P(Linear, RefusesWrongShapes) {
  const auto refuse = [&](const std::string& part, const std::function<void(OpRun&)>& body) {
    expect_error(ErrorCode::InvalidArgument, part, [&] {
      OpRun op(context(), 0);
      body(op);
    });
  };
  const std::vector<float> f12(12, 1.f), f3(3, 1.f), f6(6, 1.f);
  refuse("linear_forward: x has 4 columns, w expects 2", [&](OpRun& op) {
    linear_forward(op.ctx,
                   {op.in(f12, 3, 4), op.in(f6, 3, 2), op.in(f3), Activation::None, op.out("y", 3, 3)});
  });
  refuse("linear_forward: b has 6 values, expected 3", [&](OpRun& op) {
    linear_forward(op.ctx,
                   {op.in(f6, 3, 2), op.in(f6, 3, 2), op.in(f6), Activation::None, op.out("y", 3, 3)});
  });
  refuse("linear_forward: y is 2 x 3, expected 3 x 3", [&](OpRun& op) {
    linear_forward(op.ctx,
                   {op.in(f6, 3, 2), op.in(f6, 3, 2), op.in(f3), Activation::None, op.out("y", 2, 3)});
  });
  refuse("linear_forward: act is 3, expected 0 to 2", [&](OpRun& op) {
    linear_forward(
        op.ctx, {op.in(f6, 3, 2), op.in(f6, 3, 2), op.in(f3), static_cast<Activation>(3), op.out("y", 3, 3)});
  });
  refuse("linear_backward_input: x_act is -1, expected 0 to 2", [&](OpRun& op) {
    linear_backward_input(op.ctx, {op.in(f6, 2, 3), op.in(f6, 3, 2), op.in(std::vector<float>(4), 2, 2),
                                   static_cast<Activation>(-1), op.out("d_x", 2, 2)});
  });
  refuse("linear_forward: y is null", [&](OpRun& op) {
    linear_forward(op.ctx, {op.in(f6, 3, 2), op.in(f6, 3, 2), op.in(f3), Activation::None, {nullptr, 3, 3}});
  });
  refuse("linear_forward: y has 3 columns but row stride 2", [&](OpRun& op) {
    const Mat<float> y = op.out("y", 3, 3);
    linear_forward(op.ctx,
                   {op.in(f6, 3, 2), op.in(f6, 3, 2), op.in(f3), Activation::None, {y.data, 3, 3, 2}});
  });
  refuse("linear_backward_input: d_pre has 4 columns, w has 3 rows", [&](OpRun& op) {
    linear_backward_input(
        op.ctx, {op.in(f12, 3, 4), op.in(f6, 3, 2), op.in(f6, 3, 2), Activation::None, op.out("d_x", 3, 2)});
  });
  refuse("linear_backward_params: x has 2 rows, d_pre has 3", [&](OpRun& op) {
    linear_backward_params(op.ctx,
                           {op.in(f12, 3, 4), op.in(f6, 2, 3), op.out("d_w", 4, 3), op.out("d_b", 4)});
  });
}

TEST(LinearCpu, SmallScratchIsAnErrorThatNamesTheOp) {
  ContextOptions options;
  options.scratch_bytes = 256, options.threads = 1;
  Context ctx(options);
  const Problem p({64, 64, 64}, Activation::None, Data::Normal);
  expect_error(ErrorCode::OutOfMemory, "linear_forward: needs", [&] {
    OpRun op(ctx, 0);
    p.call(op);
  });
  EXPECT_EQ(ctx.scratch().used(), 0u);
}

TEST(LinearCpu, EveryTargetMatchesReference) {
  ContextOptions options;
  options.threads = 1;
  Context ctx(options);
  on_every_target([&] {
    for (const Shape& s : {Shape{61, 17, 40}, Shape{61, 40, 6}, Shape{530, 37, 45}, Shape{3, 29, 31}}) {
      SCOPED_TRACE(s.text());
      const Problem p(s, Activation::Tanh, Data::Normal);
      OpRun op(ctx, 1);
      p.call(op);
      p.compare(op.finish());
    }
  });
}

}  // namespace
}  // namespace pwdice::test
