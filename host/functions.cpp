// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The small functions. Each rule is written with functions, so that a gradient can be differentiated:
//   y = op(a) op(b)     d_a = d op(b)^T, d_b = op(a)^T d, transposed where the operand is
//   y = a b             d_a = d b, d_b = d a            y = a / b       d_a = d / b, d_b = -d y / b
//   y = tanh x          d_x = d (1 - y^2)               y = sqrt x      d_x = d / (2 y)
//   y = softplus x      d_x = d sigmoid x               y = sigmoid x   d_x = d y (1 - y)
//   y = sum x           d_x = d everywhere              y_i = sum_j x_ij     d_x_ij = d_i
//   y = block of x      d_x = d with zeros around it    y_i = x_{index_i}    d_x_j = sum of d_i over index_i = j
#include "functions.h"

#include "../kernels/block.h"
#include "../kernels/gather.h"
#include "../kernels/matmul.h"
#include "../kernels/reduce.h"

namespace pwdice {
namespace {

using Node = Tape::Node;

void check_same_shape(const char* function, const Tensor& a, const Tensor& b) {
  PWDICE_CHECK(a.rows() == b.rows() && a.cols() == b.cols(), "{}: {} x {} and {} x {} differ", function,
               a.rows(), a.cols(), b.rows(), b.cols());
}

void check_scalar(const char* function, const Tensor& s) {
  PWDICE_CHECK(s.size() == 1, "{}: {} x {} is not a scalar", function, s.rows(), s.cols());
}

Vec<float> flat(Mat<float> m) { return {m.data, m.size()}; }

Tensor unary(Tape& tape, Unary f, const Tensor& x, Tape::Rule rule) {
  const Mat<float> y = tape.output(x.rows(), x.cols());
  unary_map(tape.context(), {f, x.vec(), flat(y)});
  return tape.record(y, rule, {x});
}

Tensor binary(Tape& tape, const char* function, Binary f, const Tensor& a, const Tensor& b, Tape::Rule rule) {
  check_same_shape(function, a, b);
  const Mat<float> y = tape.output(a.rows(), a.cols());
  binary_map(tape.context(), {f, a.vec(), b.vec(), flat(y)});
  return tape.record(y, rule, {a, b});
}

// 1[x > 0], a constant: the derivative of a step is zero wherever it exists.
Tensor step(Tape& tape, const Tensor& x) {
  const Mat<float> y = tape.output(x.rows(), x.cols());
  unary_map(tape.context(), {Unary::Step, x.vec(), flat(y)});
  return tape.constant(y);
}

struct Transposed {
  bool a, b;
};
struct Line {
  float scale, shift;
};
struct Corner {
  int64_t row, col;
};

}  // namespace

Tensor matmul(Tape& tape, const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  const int64_t m = transpose_a ? a.cols() : a.rows();
  const int64_t n = transpose_b ? b.rows() : b.cols();
  const Mat<float> c = tape.output(m, n);
  matmul(tape.context(), {a.view, b.view, transpose_a, transpose_b, c});
  const auto rule = [](Tape& t, const Node& node, const Tensor& d) {
    const auto [ta, tb] = node.payload<Transposed>();
    const Tensor &x = node.inputs[0], &y = node.inputs[1];
    if (t.wants(x)) t.contribute(x, ta ? matmul(t, y, d, tb, true) : matmul(t, d, y, false, !tb));
    if (t.wants(y)) t.contribute(y, tb ? matmul(t, d, x, true, ta) : matmul(t, x, d, !ta, false));
  };
  return tape.record(c, rule, {a, b}, Transposed{transpose_a, transpose_b});
}

Tensor add(Tape& tape, const Tensor& a, const Tensor& b) {
  return binary(tape, "add", Binary::Add, a, b, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], d);
    t.contribute(node.inputs[1], d);
  });
}

Tensor sub(Tape& tape, const Tensor& a, const Tensor& b) {
  return binary(tape, "sub", Binary::Subtract, a, b, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], d);
    if (t.wants(node.inputs[1])) t.contribute(node.inputs[1], negate(t, d));
  });
}

Tensor mul(Tape& tape, const Tensor& a, const Tensor& b) {
  return binary(tape, "mul", Binary::Multiply, a, b, [](Tape& t, const Node& node, const Tensor& d) {
    if (t.wants(node.inputs[0])) t.contribute(node.inputs[0], mul(t, d, node.inputs[1]));
    if (t.wants(node.inputs[1])) t.contribute(node.inputs[1], mul(t, d, node.inputs[0]));
  });
}

Tensor div(Tape& tape, const Tensor& a, const Tensor& b) {
  return binary(tape, "div", Binary::Divide, a, b, [](Tape& t, const Node& node, const Tensor& d) {
    const Tensor d_a = div(t, d, node.inputs[1]);
    t.contribute(node.inputs[0], d_a);
    if (t.wants(node.inputs[1])) t.contribute(node.inputs[1], negate(t, mul(t, d_a, node.out)));
  });
}

Tensor affine(Tape& tape, const Tensor& x, float factor, float shift) {
  const Mat<float> y = tape.output(x.rows(), x.cols());
  affine(tape.context(), {x.vec(), factor, shift, flat(y)});
  const auto rule = [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], scale(t, d, node.payload<Line>().scale));
  };
  return tape.record(y, rule, {x}, Line{factor, shift});
}

Tensor scale(Tape& tape, const Tensor& x, float factor) { return affine(tape, x, factor, 0.0f); }

Tensor negate(Tape& tape, const Tensor& x) {
  return unary(tape, Unary::Negate, x, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], negate(t, d));
  });
}

Tensor square(Tape& tape, const Tensor& x) {
  return unary(tape, Unary::Square, x, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], mul(t, d, scale(t, node.inputs[0], 2.0f)));
  });
}

Tensor sqrt(Tape& tape, const Tensor& x) {
  return unary(tape, Unary::Sqrt, x, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], div(t, scale(t, d, 0.5f), node.out));
  });
}

Tensor reciprocal(Tape& tape, const Tensor& x) {
  return unary(tape, Unary::Reciprocal, x, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], negate(t, mul(t, d, square(t, node.out))));
  });
}

Tensor exp(Tape& tape, const Tensor& x) {
  return unary(tape, Unary::Exp, x, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], mul(t, d, node.out));
  });
}

Tensor log(Tape& tape, const Tensor& x) {
  return unary(tape, Unary::Log, x, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], div(t, d, node.inputs[0]));
  });
}

Tensor tanh(Tape& tape, const Tensor& x) {
  return unary(tape, Unary::Tanh, x, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], mul(t, d, affine(t, square(t, node.out), -1.0f, 1.0f)));
  });
}

Tensor relu(Tape& tape, const Tensor& x) {
  return unary(tape, Unary::Relu, x, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], mul(t, d, step(t, node.inputs[0])));
  });
}

Tensor softplus(Tape& tape, const Tensor& x) {
  return unary(tape, Unary::Softplus, x, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], mul(t, d, sigmoid(t, node.inputs[0])));
  });
}

Tensor sigmoid(Tape& tape, const Tensor& x) {
  return unary(tape, Unary::Sigmoid, x, [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], mul(t, d, mul(t, node.out, affine(t, node.out, -1.0f, 1.0f))));
  });
}

Tensor sum(Tape& tape, const Tensor& x) {
  const Mat<float> y = tape.output(1, 1);
  reduce_sum(tape.context(), {x.vec(), flat(y)});
  return tape.record(y,
                     [](Tape& t, const Node& node, const Tensor& d) {
                       t.contribute(node.inputs[0],
                                    expand(t, d, node.inputs[0].rows(), node.inputs[0].cols()));
                     },
                     {x});
}

Tensor mean(Tape& tape, const Tensor& x) {
  const Mat<float> y = tape.output(1, 1);
  reduce_mean(tape.context(), {x.vec(), flat(y)});
  return tape.record(y,
                     [](Tape& t, const Node& node, const Tensor& d) {
                       const Tensor& input = node.inputs[0];
                       const Tensor share = scale(t, d, 1.0f / static_cast<float>(input.size()));
                       t.contribute(input, expand(t, share, input.rows(), input.cols()));
                     },
                     {x});
}

Tensor row_sum(Tape& tape, const Tensor& x) {
  const Mat<float> y = tape.output(x.rows(), 1);
  row_sum(tape.context(), {x.view, flat(y)});
  return tape.record(y,
                     [](Tape& t, const Node& node, const Tensor& d) {
                       t.contribute(node.inputs[0], repeat_column(t, d, node.inputs[0].cols()));
                     },
                     {x});
}

Tensor column_sum(Tape& tape, const Tensor& x) {
  const Mat<float> y = tape.output(x.cols(), 1);
  column_sum(tape.context(), {x.view, flat(y)});
  return tape.record(y,
                     [](Tape& t, const Node& node, const Tensor& d) {
                       t.contribute(node.inputs[0], repeat_row(t, d, node.inputs[0].rows()));
                     },
                     {x});
}

Tensor expand(Tape& tape, const Tensor& s, int64_t rows, int64_t cols) {
  check_scalar("expand", s);
  const Mat<float> y = tape.output(rows, cols);
  broadcast_columns(tape.context(), {s.vec(), Mat<float>(y.data, rows * cols, 1)});
  return tape.record(
      y, [](Tape& t, const Node& node, const Tensor& d) { t.contribute(node.inputs[0], sum(t, d)); }, {s});
}

Tensor repeat_column(Tape& tape, const Tensor& s, int64_t cols) {
  return scale_rows(tape, tape.full(s.rows(), cols, 1.0f), s);
}

Tensor repeat_row(Tape& tape, const Tensor& s, int64_t rows) {
  PWDICE_CHECK(s.cols() == 1, "repeat_row: {} x {} is not a vector", s.rows(), s.cols());
  const Mat<float> y = tape.output(rows, s.rows());
  broadcast_columns(tape.context(), {s.vec(), y});
  return tape.record(
      y, [](Tape& t, const Node& node, const Tensor& d) { t.contribute(node.inputs[0], column_sum(t, d)); },
      {s});
}

Tensor scale_rows(Tape& tape, const Tensor& x, const Tensor& s) {
  PWDICE_CHECK(s.cols() == 1 && s.rows() == x.rows(), "scale_rows: {} x {} by {} x {}", x.rows(), x.cols(),
               s.rows(), s.cols());
  const Mat<float> y = tape.output(x.rows(), x.cols());
  scale_rows(tape.context(), {x.view, s.vec(), y});
  return tape.record(y,
                     [](Tape& t, const Node& node, const Tensor& d) {
                       if (t.wants(node.inputs[0]))
                         t.contribute(node.inputs[0], scale_rows(t, d, node.inputs[1]));
                       if (t.wants(node.inputs[1]))
                         t.contribute(node.inputs[1], row_sum(t, mul(t, d, node.inputs[0])));
                     },
                     {x, s});
}

Tensor scale_by(Tape& tape, const Tensor& x, const Tensor& s) {
  check_scalar("scale_by", s);
  const Mat<float> y = tape.output(x.rows(), x.cols());
  scale_by(tape.context(), {x.vec(), s.vec(), flat(y)});
  return tape.record(y,
                     [](Tape& t, const Node& node, const Tensor& d) {
                       if (t.wants(node.inputs[0]))
                         t.contribute(node.inputs[0], scale_by(t, d, node.inputs[1]));
                       if (t.wants(node.inputs[1]))
                         t.contribute(node.inputs[1], sum(t, mul(t, d, node.inputs[0])));
                     },
                     {x, s});
}

Tensor block(Tape& tape, const Tensor& x, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  PWDICE_CHECK(
      row >= 0 && rows >= 0 && row <= x.rows() - rows && col >= 0 && cols >= 0 && col <= x.cols() - cols,
      "block: rows {} + {} and columns {} + {} of {} x {}", row, rows, col, cols, x.rows(), x.cols());
  const Mat<const float> part(x.view.data + row * x.view.stride + col, rows, cols, x.view.stride);
  Mat<const float> y = part;
  if (!part.contiguous()) {
    const Mat<float> copy = tape.output(rows, cols);
    copy_block(tape.context(), {part, copy});
    y = copy;
  }
  const auto rule = [](Tape& t, const Node& node, const Tensor& d) {
    const auto [r, c] = node.payload<Corner>();
    const Tensor& input = node.inputs[0];
    if (!t.creating_graph()) return t.contribute_block(input, r, c, d);
    t.contribute(input, place(t, d, input.rows(), input.cols(), r, c));
  };
  return tape.record(y, rule, {x}, Corner{row, col});
}

Tensor rows(Tape& tape, const Tensor& x, int64_t begin, int64_t count) {
  return block(tape, x, begin, count, 0, x.cols());
}

Tensor column(Tape& tape, const Tensor& x, int64_t col, int64_t row_begin, int64_t count) {
  return block(tape, x, row_begin, count, col, 1);
}

Tensor place(Tape& tape, const Tensor& x, int64_t rows, int64_t cols, int64_t row, int64_t col) {
  PWDICE_CHECK(row >= 0 && row <= rows - x.rows() && col >= 0 && col <= cols - x.cols(),
               "place: {} x {} at row {} and column {} of {} x {}", x.rows(), x.cols(), row, col, rows, cols);
  const Mat<float> y = tape.output(rows, cols);
  fill_zero(tape.context(), y.data, static_cast<size_t>(y.size()) * sizeof(float));
  copy_block(tape.context(), {x.view, {y.data + row * cols + col, x.rows(), x.cols(), cols}});
  const auto rule = [](Tape& t, const Node& node, const Tensor& d) {
    const auto [r, c] = node.payload<Corner>();
    const Tensor& input = node.inputs[0];
    t.contribute(input, block(t, d, r, input.rows(), c, input.cols()));
  };
  return tape.record(y, rule, {x}, Corner{row, col});
}

Tensor gather(Tape& tape, const Tensor& x, Vec<const int32_t> index) {
  PWDICE_CHECK(x.cols() == 1, "gather: {} x {} is not a vector", x.rows(), x.cols());
  const Mat<float> y = tape.output(index.size, 1);
  gather_values(tape.context(), {x.vec(), index, flat(y)});
  const auto rule = [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], scatter(t, d, node.payload<Vec<const int32_t>>(), node.inputs[0].rows()));
  };
  return tape.record(y, rule, {x}, index);
}

Tensor scatter(Tape& tape, const Tensor& x, Vec<const int32_t> index, int64_t rows) {
  PWDICE_CHECK(x.cols() == 1, "scatter: {} x {} is not a vector", x.rows(), x.cols());
  const Mat<float> y = tape.output(rows, 1);
  scatter_values(tape.context(), {x.vec(), index, flat(y)});
  const auto rule = [](Tape& t, const Node& node, const Tensor& d) {
    t.contribute(node.inputs[0], gather(t, d, node.payload<Vec<const int32_t>>()));
  };
  return tape.record(y, rule, {x}, index);
}

}  // namespace pwdice
