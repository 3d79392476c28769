// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// op/linear/<forward|input|params>/<rows>x<in>x<out>: the three ops of a layer at the shapes of the networks.
// baseline/dnnl_sgemm/...: the same products by oneDNN, without bias, activation and bias gradient; this is
// what the choice of an own product is measured by.
#include <array>
#include <memory>

#include "../kernels/linear.h"
#include "baseline.h"
#include "suite.h"

#ifdef PWDICE_BENCH_DNNL
#include <dnnl.h>
#endif

namespace pwdice::bench {
namespace {

struct Shape {
  int64_t n, in, out;
};

constexpr Shape kShapes[] = {{1024, 256, 256}, {512, 256, 256}, {1024, 11, 256}, {1024, 111, 256},
                             {1024, 256, 1},   {1024, 256, 6},  {1024, 256, 16}, {8192, 128, 128}};

// One layer with its data; x is the output of a tanh layer.
struct Layer {
  Shape s;
  Values x, w, b, d_pre, y, d_x, d_w, d_b;

  explicit Layer(const Shape& shape) : s(shape) {
    x = random_values<Values>(s.n * s.in, 0.4, 1);
    w = random_values<Values>(s.out * s.in, 1 / std::sqrt(s.in), 2);
    b = random_values<Values>(s.out, 0.1, 3), d_pre = random_values<Values>(s.n * s.out, 1, 4);
    y.resize(d_pre.size()), d_x.resize(x.size()), d_w.resize(w.size()), d_b.resize(b.size());
  }
  void forward(Context& ctx) {
    linear_forward(ctx, {{x.data(), s.n, s.in},
                         {w.data(), s.out, s.in},
                         {b.data(), s.out},
                         Activation::Tanh,
                         {y.data(), s.n, s.out}});
  }
  void input(Context& ctx) {
    linear_backward_input(ctx, {{d_pre.data(), s.n, s.out},
                                {w.data(), s.out, s.in},
                                {x.data(), s.n, s.in},
                                Activation::Tanh,
                                {d_x.data(), s.n, s.in}});
  }
  void params(Context& ctx) {
    linear_backward_params(
        ctx,
        {{d_pre.data(), s.n, s.out}, {x.data(), s.n, s.in}, {d_w.data(), s.out, s.in}, {d_b.data(), s.out}});
  }

  // A few hundred elements spread over the outputs against double.
  bool right(Context& ctx) {
    forward(ctx), input(ctx), params(ctx);
    const Mat<const float> weights(w.data(), s.out, s.in);
    bool ok = true;
    for (int64_t i = 0; i < s.n; i += std::max<int64_t>(1, s.n / 5)) {
      const auto row = [&](const Values& m, int64_t width) {
        return std::vector<double>(m.begin() + i * width, m.begin() + (i + 1) * width);
      };
      const std::vector<double> want = layer(weights, b.data(), row(x, s.in), Activation::Tanh);
      for (int64_t j = 0; j < s.out; ++j) ok &= close(y[at(i, j, s.out)], want[static_cast<size_t>(j)], 1);
      const std::vector<double> back = transposed(weights, row(d_pre, s.out));
      for (int64_t j = 0; j < s.in; ++j) {
        const double factor = slope(Activation::Tanh, x[at(i, j, s.in)]);
        ok &= close(d_x[at(i, j, s.in)], factor * back[static_cast<size_t>(j)], std::sqrt(s.out));
      }
    }
    for (int64_t k = 0; k < std::max(s.in, s.out); ++k) {
      const int64_t i = k % s.out, j = k % s.in;
      double sum = 0;
      for (int64_t r = 0; r < s.n; ++r)
        sum += static_cast<double>(d_pre[at(r, i, s.out)]) * x[at(r, j, s.in)];
      ok &= close(d_w[at(i, j, s.in)], sum, std::sqrt(s.n));
    }
    return ok;
  }

 private:
  static size_t at(int64_t i, int64_t j, int64_t width) { return static_cast<size_t>(i * width + j); }
};

using Op = void (Layer::*)(Context&);

void add_op(Suite& suite, const char* name, const Shape& s, Op op, double tanhs) {
  const std::string shape = std::to_string(s.n) + "x" + std::to_string(s.in) + "x" + std::to_string(s.out);
  const Work work{2.0 * static_cast<double>(s.n * s.in * s.out), 0, tanhs};
  add("op/linear/" + std::string(name) + "/" + shape, [&suite, s, op, work](benchmark::State& state) {
    Layer layer(s);
    if (!layer.right(suite.ctx)) return fail(state, "the layer differs from its reference");
    time_iterations(state, suite.ctx, suite.machine, work, [&] { (layer.*op)(suite.ctx); });
  });
}

#ifdef PWDICE_BENCH_DNNL
// y = x w^T, d_x = d_pre w, d_w = d_pre^T x; dnnl_sgemm is row-major.
void add_dnnl(Suite& suite, const Shape& s) {
  const std::string shape = std::to_string(s.n) + "x" + std::to_string(s.in) + "x" + std::to_string(s.out);
  const Work work{2.0 * static_cast<double>(s.n * s.in * s.out)};
  const auto name = [&](const char* op) { return "baseline/dnnl_sgemm/" + std::string(op) + "/" + shape; };
  add(name("forward"), [&suite, s, work](benchmark::State& state) {
    Layer l(s);
    time_iterations(state, suite.ctx, suite.machine, work, [&] {
      dnnl_sgemm('N', 'T', s.n, s.out, s.in, 1, l.x.data(), s.in, l.w.data(), s.in, 0, l.y.data(), s.out);
    });
  });
  add(name("input"), [&suite, s, work](benchmark::State& state) {
    Layer l(s);
    time_iterations(state, suite.ctx, suite.machine, work, [&] {
      dnnl_sgemm('N', 'N', s.n, s.in, s.out, 1, l.d_pre.data(), s.out, l.w.data(), s.in, 0, l.d_x.data(),
                 s.in);
    });
  });
  add(name("params"), [&suite, s, work](benchmark::State& state) {
    Layer l(s);
    time_iterations(state, suite.ctx, suite.machine, work, [&] {
      dnnl_sgemm('T', 'N', s.out, s.in, s.n, 1, l.d_pre.data(), s.out, l.x.data(), s.in, 0, l.d_w.data(),
                 s.in);
    });
  });
}
#endif

}  // namespace

void register_linear(Suite& suite) {
  for (const Shape& s : kShapes) {
    add_op(suite, "forward", s, &Layer::forward, static_cast<double>(s.n * s.out));
    add_op(suite, "input", s, &Layer::input, 0);
    add_op(suite, "params", s, &Layer::params, 0);
#ifdef PWDICE_BENCH_DNNL
    add_dnnl(suite, s);
#endif
  }
}

}  // namespace pwdice::bench
