// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// op/mlp/<forward|backward>/<rows>x<in>-<hidden>-<hidden>-<out>: whole networks, ReLU.
// op/gradient_penalty/512x<in>: the discriminator's penalty and its gradient, tanh.
// Gradients are verified along themselves: (L(p + h g) - L(p - h g)) / 2h in double must be |g|^2.
#include <array>

#include "../kernels/gradient_penalty.h"
#include "../kernels/mlp.h"
#include "baseline.h"
#include "suite.h"

namespace pwdice::bench {
namespace {

constexpr int64_t kWidth = 256;
using Sizes = std::array<int64_t, 4>;  // in, two hidden layers of one width, out

// Three layers with their data.
struct Network {
  int64_t n;
  Sizes sizes;
  Activation act;
  Values x, d_pre, norm, loss;
  std::array<Values, 3> w, b, y, d_w, d_b;

  Network(int64_t rows, const Sizes& of, Activation f) : n(rows), sizes(of), act(f) {
    x = random_values<Values>(n * sizes[0], 1, 1), d_pre = random_values<Values>(n * sizes[3], 1, 2);
    for (size_t l = 0; l < 3; ++l) {
      const int64_t from = sizes[l], to = sizes[l + 1];
      w[l] = random_values<Values>(to * from, 1 / std::sqrt(from), 3 + static_cast<uint32_t>(l));
      b[l] = random_values<Values>(to, 0.1, 6 + static_cast<uint32_t>(l));
      y[l].resize(static_cast<size_t>(n * mlp_stride(to))), d_w[l].resize(w[l].size()),
          d_b[l].resize(b[l].size());
    }
    norm.resize(static_cast<size_t>(n)), loss.resize(1);
  }

  Mat<const float> input() const { return {x.data(), n, sizes[0]}; }
  Mat<const float> weight(size_t l) const { return {w[l].data(), sizes[l + 1], sizes[l]}; }
  Vec<const float> bias(size_t l) const { return {b[l].data(), sizes[l + 1]}; }
  Mat<float> hidden(Values& memory) { return {memory.data(), n, sizes[1], mlp_stride(sizes[1])}; }
  Mat<float> d_weight(size_t l) { return {d_w[l].data(), sizes[l + 1], sizes[l]}; }
  Vec<float> d_bias(size_t l) { return {d_b[l].data(), sizes[l + 1]}; }

  std::array<MlpLayer, 3> layers() {
    return {MlpLayer{weight(0), bias(0), act, hidden(y[0])}, MlpLayer{weight(1), bias(1), act, hidden(y[1])},
            MlpLayer{weight(2), bias(2), Activation::None, {y[2].data(), n, sizes[3]}}};
  }
  void forward(Context& ctx) { mlp_forward(ctx, {input(), layers()}); }
  void backward(Context& ctx) {
    const std::array<MlpGradient, 3> to{
        MlpGradient{d_weight(0), d_bias(0)}, {d_weight(1), d_bias(1)}, {d_weight(2), d_bias(2)}};
    mlp_backward(ctx, {input(), layers(), {d_pre.data(), n, sizes[3]}, to, {}});
  }
  void penalty(Context& ctx) {
    gradient_penalty(ctx, {input(),
                           weight(0),
                           weight(1),
                           bias(0),
                           bias(1),
                           {w[2].data(), kWidth},
                           act,
                           10.f,
                           {norm.data(), n},
                           {loss.data(), 1},
                           d_weight(0),
                           d_weight(1),
                           d_bias(0),
                           d_bias(1),
                           {d_w[2].data(), kWidth}});
  }

  // -- the same in double, one row at a time ---------------------------------------------------------------

  std::vector<double> row(int64_t i) const {
    return {x.begin() + i * sizes[0], x.begin() + (i + 1) * sizes[0]};
  }
  double output_loss() const {  // <d_pre, y>
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto h = layer(weight(1), b[1].data(), layer(weight(0), b[0].data(), row(i), act), act);
      const auto out = layer(weight(2), b[2].data(), h, Activation::None);
      for (size_t k = 0; k < out.size(); ++k)
        sum += out[k] * static_cast<double>(d_pre[static_cast<size_t>(i * sizes[3]) + k]);
    }
    return sum;
  }
  double penalty_loss() const {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double excess =
          gradient_norm(weight(0), b[0].data(), weight(1), b[1].data(), weight(2), row(i), act) - 1;
      sum += 10 * excess * excess / static_cast<double>(n);
    }
    return sum;
  }
  bool is_gradient_of(double (Network::*value)() const) const {
    double squares = 0;
    const auto moved = [&](double step) {
      Network at = *this;
      for (size_t l = 0; l < 3; ++l) {
        for (size_t i = 0; i < w[l].size(); ++i) at.w[l][i] += static_cast<float>(step * d_w[l][i]);
        for (size_t i = 0; i < b[l].size(); ++i) at.b[l][i] += static_cast<float>(step * d_b[l][i]);
      }
      return (at.*value)();
    };
    for (size_t l = 0; l < 3; ++l) {
      for (const float v : d_w[l]) squares += static_cast<double>(v) * static_cast<double>(v);
      for (const float v : d_b[l]) squares += static_cast<double>(v) * static_cast<double>(v);
    }
    const double step = 1e-3 / std::sqrt(squares);
    return close((moved(step) - moved(-step)) / (2 * step), squares, squares, 1e-2);
  }
};

constexpr int64_t kCheckRows = 300;  // two slices and a rest of rows are more than one block

void add_mlp(Suite& suite, int64_t n, const Sizes& sizes) {
  const auto flop = [&](int64_t products) { return 2.0 * static_cast<double>(n * products); };
  const int64_t in = sizes[0], width = sizes[1], out = sizes[3];
  const int64_t first = in * width, all = first + width * width + width * out;
  const std::string hidden = "-" + std::to_string(width);
  const std::string shape =
      std::to_string(n) + "x" + std::to_string(in) + hidden + hidden + "-" + std::to_string(out);
  for (const bool backward : {false, true}) {
    const Work work{flop(backward ? 2 * all - first : all)};
    add("op/mlp/" + std::string(backward ? "backward/" : "forward/") + shape,
        [&suite, n, sizes, work, backward](benchmark::State& state) {
          for (const Activation act : {Activation::Tanh, Activation::Relu}) {
            Network small(kCheckRows, sizes, act);
            small.forward(suite.ctx), small.backward(suite.ctx);
            if (!small.is_gradient_of(&Network::output_loss))
              return fail(state, "the gradient is wrong");
          }
          Network net(n, sizes, Activation::Relu);
          net.forward(
              suite.ctx);  // backward then runs on its own leftovers: the time does not depend on them
          time_iterations(state, suite.ctx, suite.machine, work,
                          [&] { backward ? net.backward(suite.ctx) : net.forward(suite.ctx); });
        });
  }
}

void add_penalty(Suite& suite, int64_t n, int64_t in) {
  const auto rows = static_cast<double>(n), w = static_cast<double>(kWidth), d = static_cast<double>(in);
  const Work work{2 * rows * w * (6 * w + 5 * d), 0, 2 * rows * w};
  add("op/gradient_penalty/" + std::to_string(n) + "x" + std::to_string(in),
      [&suite, n, in, work](benchmark::State& state) {
        Network small(kCheckRows, {in, kWidth, kWidth, 1}, Activation::Tanh);
        small.penalty(suite.ctx);
        if (!close(small.loss[0], small.penalty_loss(), small.penalty_loss(), 1e-4) ||
            !small.is_gradient_of(&Network::penalty_loss))
          return fail(state, "the penalty or its gradient is wrong");
        Network net(n, {in, kWidth, kWidth, 1}, Activation::Tanh);
        time_iterations(state, suite.ctx, suite.machine, work, [&] { net.penalty(suite.ctx); });
      });
}

}  // namespace

void register_networks(Suite& suite) {
  add_mlp(suite, 1024, {11, kWidth, kWidth, 6});
  add_mlp(suite, 1024, {111, kWidth, kWidth, 16});
  add_mlp(suite, 256, {11, kWidth, kWidth, 6});
  add_mlp(suite, 6144, {11, kWidth, kWidth, 3});
  add_mlp(suite, 6144, {11, kWidth, kWidth, 1});  // gradients as sums of selected rows
  add_mlp(suite, 8192, {11, 128, 128, 32});       // the encoder
  for (const int64_t in : {11, 111}) add_penalty(suite, 512, in);
}

}  // namespace pwdice::bench
