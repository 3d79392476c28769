// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Every function of the tape against its formula in double: the value, the gradient by central differences,
// and for the small functions the gradient of a directional derivative, which is a second derivative.
#include "../host/functions.h"

#include <functional>

#include "reference.h"
#include "tape_case.h"

namespace pwdice::test {
namespace {

struct Case {
  std::string name;
  std::vector<Shape> inputs;
  float low, high;  // the inputs are uniform in this range
  std::function<Tensor(Tape&, const std::vector<Tensor>&)> build;
  std::function<std::vector<double>(const Values&)> want;
};

std::vector<double> map1(const std::vector<double>& x, double (*f)(double)) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
  return y;
}

std::vector<double> map2(const Values& v, double (*f)(double, double)) {
  std::vector<double> y(v[0].size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = f(v[0][i], v[1][i]);
  return y;
}

Case unary_case(const char* name, Tensor (*f)(Tape&, const Tensor&), double (*want)(double), float low,
                float high) {
  return {name,
          {{5, 7}},
          low,
          high,
          [f](Tape& t, const std::vector<Tensor>& x) { return f(t, x[0]); },
          [want](const Values& v) { return map1(v[0], want); }};
}

Case binary_case(const char* name, Tensor (*f)(Tape&, const Tensor&, const Tensor&),
                 double (*want)(double, double)) {
  return {name,
          {{4, 6}, {4, 6}},
          0.5f,
          2.0f,
          [f](Tape& t, const std::vector<Tensor>& x) { return f(t, x[0], x[1]); },
          [want](const Values& v) { return map2(v, want); }};
}

Case matmul_case(bool ta, bool tb) {
  const Shape a = ta ? Shape{5, 3} : Shape{3, 5}, b = tb ? Shape{4, 5} : Shape{5, 4};
  return {
      std::string("matmul") + (ta ? " a^T" : "") + (tb ? " b^T" : ""),
      {a, b},
      -1,
      1,
      [=](Tape& t, const std::vector<Tensor>& x) { return matmul(t, x[0], x[1], ta, tb); },
      [=](const Values& v) {
        reference::Matrix<double> x(a.rows, a.cols, v[0]), y(b.rows, b.cols, v[1]);
        return reference::product(ta ? reference::transpose(x) : x, tb ? reference::transpose(y) : y).data;
      }};
}

// y_ij of a (rows, cols) result.
std::vector<double> tabulate(int64_t rows, int64_t cols, const std::function<double(size_t, size_t)>& y) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) values.push_back(y(static_cast<size_t>(i), static_cast<size_t>(j)));
  }
  return values;
}

// Indices in the memory of the tape's backend, for as long as its step.
Vec<const int32_t> index_memory(Tape& tape, const std::vector<int32_t>& index) {
  const size_t bytes = index.size() * sizeof(int32_t);
  auto* memory = static_cast<int32_t*>(tape.arena().take_bytes(bytes));
  upload(tape.context(), memory, index.data(), bytes);
  return {memory, static_cast<int64_t>(index.size())};
}

std::vector<Case> unary_cases() {
  return {
      unary_case(
          "negate", negate, [](double x) { return -x; }, -2, 2),
      unary_case(
          "square", square, [](double x) { return x * x; }, -2, 2),
      unary_case(
          "sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0.5f, 2),
      unary_case(
          "reciprocal", reciprocal, [](double x) { return 1 / x; }, 0.5f, 2),
      unary_case(
          "exp", exp, [](double x) { return std::exp(x); }, -2, 2),
      unary_case(
          "log", log, [](double x) { return std::log(x); }, 0.5f, 2),
      unary_case(
          "tanh", tanh, [](double x) { return std::tanh(x); }, -2, 2),
      unary_case(
          "relu above", relu, [](double x) { return x; }, 0.1f, 2),
      unary_case(
          "relu below", relu, [](double) { return 0.0; }, -2, -0.1f),
      unary_case(
          "softplus", softplus, [](double x) { return reference::softplus(x); }, -2, 2),
      unary_case(
          "sigmoid", sigmoid, [](double x) { return reference::sigmoid(x); }, -2, 2),
  };
}

using Inputs = const std::vector<Tensor>&;

std::vector<Case> reduction_cases() {
  return {
      {"affine",
       {{3, 4}},
       -1,
       1,
       [](Tape& t, Inputs x) { return affine(t, x[0], 3.0f, -2.0f); },
       [](const Values& v) { return map1(v[0], [](double x) { return 3 * x - 2; }); }},
      {"sum",
       {{5, 3}},
       -1,
       1,
       [](Tape& t, Inputs x) { return sum(t, x[0]); },
       [](const Values& v) { return std::vector<double>{reference::sum(v[0])}; }},
      {"mean",
       {{5, 3}},
       -1,
       1,
       [](Tape& t, Inputs x) { return mean(t, x[0]); },
       [](const Values& v) { return std::vector<double>{reference::sum(v[0]) / 15}; }},
      {"row_sum",
       {{2, 3}},
       -1,
       1,
       [](Tape& t, Inputs x) { return row_sum(t, x[0]); },
       [](const Values& v) {
         const auto& x = v[0];
         return std::vector<double>{x[0] + x[1] + x[2], x[3] + x[4] + x[5]};
       }},
      {"column_sum",
       {{2, 3}},
       -1,
       1,
       [](Tape& t, Inputs x) { return column_sum(t, x[0]); },
       [](const Values& v) {
         const auto& x = v[0];
         return std::vector<double>{x[0] + x[3], x[1] + x[4], x[2] + x[5]};
       }},
      {"expand",
       {{1, 1}},
       -1,
       1,
       [](Tape& t, Inputs x) { return expand(t, x[0], 3, 5); },
       [](const Values& v) { return std::vector<double>(15, v[0][0]); }},
  };
}

std::vector<Case> repeat_cases() {
  return {
      {"repeat_column",
       {{4, 1}},
       -1,
       1,
       [](Tape& t, Inputs x) { return repeat_column(t, x[0], 3); },
       [](const Values& v) { return tabulate(4, 3, [&](size_t i, size_t) { return v[0][i]; }); }},
      {"repeat_row",
       {{4, 1}},
       -1,
       1,
       [](Tape& t, Inputs x) { return repeat_row(t, x[0], 3); },
       [](const Values& v) { return tabulate(3, 4, [&](size_t, size_t j) { return v[0][j]; }); }},
      {"scale_rows",
       {{4, 3}, {4, 1}},
       -1,
       1,
       [](Tape& t, Inputs x) { return scale_rows(t, x[0], x[1]); },
       [](const Values& v) {
         return tabulate(4, 3, [&](size_t i, size_t j) { return v[0][3 * i + j] * v[1][i]; });
       }},
      {"scale_by",
       {{4, 3}, {1, 1}},
       -1,
       1,
       [](Tape& t, Inputs x) { return scale_by(t, x[0], x[1]); },
       [](const Values& v) {
         return tabulate(4, 3, [&](size_t i, size_t j) { return v[0][3 * i + j] * v[1][0]; });
       }},
  };
}

std::vector<Case> part_cases() {
  return {
      {"rows",
       {{6, 3}},
       -1,
       1,
       [](Tape& t, Inputs x) { return rows(t, x[0], 2, 3); },
       [](const Values& v) { return std::vector<double>(v[0].begin() + 6, v[0].begin() + 15); }},
      {"column",
       {{6, 3}},
       -1,
       1,
       [](Tape& t, Inputs x) { return column(t, x[0], 1, 2, 3); },
       [](const Values& v) {
         return std::vector<double>{v[0][7], v[0][10], v[0][13]};
       }},
      {"place",
       {{2, 2}},
       -1,
       1,
       [](Tape& t, Inputs x) { return place(t, x[0], 3, 4, 1, 2); },
       [](const Values& v) {
         std::vector<double> y(12, 0.0);
         y[6] = v[0][0], y[7] = v[0][1], y[10] = v[0][2], y[11] = v[0][3];
         return y;
       }},
      {"gather",
       {{4, 1}},
       -1,
       1,
       [](Tape& t, Inputs x) { return gather(t, x[0], index_memory(t, {2, 0, 2, 3, 2})); },
       [](const Values& v) {
         return std::vector<double>{v[0][2], v[0][0], v[0][2], v[0][3], v[0][2]};
       }},
      {"scatter",
       {{4, 1}},
       -1,
       1,
       [](Tape& t, Inputs x) { return scatter(t, x[0], index_memory(t, {1, 4, 1, 0}), 5); },
       [](const Values& v) {
         return std::vector<double>{v[0][3], v[0][0] + v[0][2], 0.0, 0.0, v[0][1]};
       }},
      // Used several times, in overlapping parts and beside itself: the tape adds.
      {"x x + overlapping parts of x",
       {{4, 2}},
       -1,
       1,
       [](Tape& t, Inputs x) {
         const Tensor parts = mul(t, rows(t, x[0], 0, 3), rows(t, x[0], 1, 3));
         return add(t, sum(t, mul(t, x[0], x[0])),
                    sum(t, mul(t, parts, place(t, column(t, x[0], 1, 0, 3), 3, 2, 0, 0))));
       },
       [](const Values& v) {
         const auto& x = v[0];
         double total = reference::dot(x, x);
         for (size_t i = 0; i < 3; ++i) total += x[2 * i] * x[2 * i + 2] * x[2 * i + 1];
         return std::vector<double>{total};
       }},
  };
}

std::vector<Case> small_cases() {
  std::vector<Case> cases = unary_cases();
  for (auto* more : {reduction_cases, repeat_cases, part_cases}) {
    for (Case& c : more()) cases.push_back(std::move(c));
  }
  cases.push_back(binary_case("add", add, [](double a, double b) { return a + b; }));
  cases.push_back(binary_case("sub", sub, [](double a, double b) { return a - b; }));
  cases.push_back(binary_case("mul", mul, [](double a, double b) { return a * b; }));
  cases.push_back(binary_case("div", div, [](double a, double b) { return a / b; }));
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) cases.push_back(matmul_case(ta, tb));
  }
  return cases;
}

class Functions : public TapeTest {
 protected:
  Tensor weights(const Tensor& like, uint64_t seed) {
    return tape_.constant(in_memory(normal(like.size(), seed), like.rows(), like.cols()));
  }
};
INSTANTIATE_TEST_SUITE_P(, Functions, testing::ValuesIn(test_backends()), backend_name);

TEST_P(Functions, ValuesGradientsAndSecondDerivatives) {
  for (const Case& c : small_cases()) {
    SCOPED_TRACE(c.name);
    memory_.clear();
    tape_.begin();
    std::vector<Tensor> inputs;
    std::vector<double> x;
    for (const Shape& s : c.inputs) {
      const auto host = uniform(s.size(), c.low, c.high, 10 + inputs.size());
      inputs.push_back(tape_.variable(in_memory(host, s.rows, s.cols)));
      x.insert(x.end(), host.begin(), host.end());
    }
    const Tensor y = c.build(tape_, inputs);
    const auto want = c.want(split(c.inputs, x));
    expect_within(download(ctx_, y), want, 1e-6, 1e-6);

    // f(x) = <w, y + y^2>: linear in neither a linear y nor a square root.
    const auto w = to<double>(normal(y.size(), 3));
    const Function f = [&](const std::vector<double>& at) {
      const auto out = c.want(split(c.inputs, at));
      double total = 0;
      for (size_t i = 0; i < out.size(); ++i) total += w[i] * (out[i] + out[i] * out[i]);
      return total;
    };
    const Tensor loss = sum(tape_, mul(tape_, add(tape_, y, square(tape_, y)), weights(y, 3)));
    std::vector<Tensor> gradients(inputs.size());
    tape_.gradient(loss, inputs, gradients, {.create_graph = true});
    std::vector<float> gradient, direction;
    Tensor slope = tape_.full(1, 1, 0.0f);  // <v, grad f>: the derivative of f along v
    for (size_t k = 0; k < inputs.size(); ++k) {
      for (const float g : download(ctx_, gradients[k])) gradient.push_back(g);
      for (const float v : normal(inputs[k].size(), 20 + k)) direction.push_back(v);
      slope = add(tape_, slope, sum(tape_, mul(tape_, gradients[k], weights(inputs[k], 20 + k))));
    }
    expect_gradient(gradient, f, x);

    const Function slope_of_f = [&](const std::vector<double>& at) {
      const double h = 1e-4;
      std::vector<double> ahead = at, behind = at;
      for (size_t i = 0; i < at.size(); ++i) ahead[i] += h * direction[i], behind[i] -= h * direction[i];
      return (f(ahead) - f(behind)) / (2 * h);
    };
    tape_.gradient(slope, inputs, gradients, {});
    std::vector<float> second;
    for (const Tensor& g : gradients) {
      for (const float value : download(ctx_, g)) second.push_back(value);
    }
    expect_gradient(second, slope_of_f, x, 1e-3);
  }
}

TEST_P(Functions, ShapesThatDoNotFit) {
  const Tensor a = tape_.full(2, 3, 1.0f), b = tape_.full(3, 2, 1.0f);
  expect_error(ErrorCode::InvalidArgument, "add: 2 x 3 and 3 x 2 differ", [&] { add(tape_, a, b); });
  expect_error(ErrorCode::InvalidArgument, "matmul", [&] { matmul(tape_, a, a); });
  expect_error(ErrorCode::InvalidArgument, "block: rows 1 + 2", [&] { rows(tape_, a, 1, 2); });
  expect_error(ErrorCode::InvalidArgument, "place", [&] { place(tape_, a, 2, 3, 1, 0); });
  const Vec<const int32_t> none;
  expect_error(ErrorCode::InvalidArgument, "gather: 2 x 3 is not a vector", [&] { gather(tape_, a, none); });
  expect_error(ErrorCode::InvalidArgument, "scatter: 2 x 3 is not a vector",
               [&] { scatter(tape_, a, none, 1); });
  expect_error(ErrorCode::InvalidArgument, "scale_by", [&] { scale_by(tape_, a, b); });
  expect_error(ErrorCode::InvalidArgument, "infonce: 3 rows", [&] { infonce(tape_, b, a); });
  expect_error(ErrorCode::InvalidArgument, "bce: logits is 2 x 3", [&] { bce(tape_, a, 1); });
}

}  // namespace
}  // namespace pwdice::test
