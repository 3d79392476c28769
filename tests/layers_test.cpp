// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../host/layers.h"

#include "../kernels/linear.h"
#include "reference.h"
#include "tape_case.h"

namespace pwdice::test {
namespace {

// The net's parameters as one vector of doubles, and the net as a function of it.
struct NetReference {
  std::vector<int64_t> sizes;
  Activation hidden;

  reference::Matrix<double> operator()(const std::vector<double>& params, reference::Matrix<double> h) const {
    auto at = params.begin();
    for (size_t l = 0; l + 1 < sizes.size(); ++l) {
      const int64_t in = sizes[l], out = sizes[l + 1];
      const reference::Matrix<double> w(out, in, std::vector<double>(at, at + in * out));
      at += in * out;
      const std::vector<double> b(at, at + out);
      at += out;
      h = reference::linear(h, w, b, l + 2 < sizes.size() ? hidden : Activation::None);
    }
    return h;
  }
};

class Layers : public TapeTest {
 protected:
  ParamStore params_{"net"};

  std::vector<float> gather(Mat<float> (Param::*section)() const) {
    std::vector<float> all;
    for (size_t i = 0; i < params_.entries().size(); ++i) {
      const Mat<float> m = (Param{&params_, static_cast<int32_t>(i)}.*section)();
      for (const float value : download(ctx_, Vec<float>{m.data, m.size()})) all.push_back(value);
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(, Layers, testing::ValuesIn(test_backends()), backend_name);

// Gradients by the parameters and by the input, of the fused and of the composed network.
TEST_P(Layers, MlpAgainstCentralDifferences) {
  const std::vector<int64_t> sizes = {5, 16, 8, 3};
  const Mlp net(params_, "net", sizes, Activation::Tanh);
  params_.allocate(ctx_);
  params_.initialise(ctx_, 3);
  const NetReference want{sizes, Activation::Tanh};
  const int64_t n = 9;
  const auto x = normal(n * 5, 1), weights = normal(n * 3, 2);
  const Mat<const float> x_in = in_memory(x, n, 5), w_in = in_memory(weights, n, 3);
  const auto theta = to<double>(gather(&Param::value));
  const Function by_params = [&](const std::vector<double>& at) {
    return reference::dot(to<double>(weights), want(at, reference::Matrix<double>(n, 5, x)).data);
  };
  const Function by_input = [&](const std::vector<double>& at) {
    return reference::dot(to<double>(weights), want(theta, reference::Matrix<double>(n, 5, at)).data);
  };
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(fused ? "fused" : "composed");
    tape_.begin(params_);
    const Tensor input = tape_.variable(x_in);
    const Tensor y = fused ? mlp(tape_, input, net) : mlp_composed(tape_, input, net);
    expect_within(download(ctx_, y), want(theta, reference::Matrix<double>(n, 5, x)).data, 1e-5);
    const Tensor loss = sum(tape_, mul(tape_, y, tape_.constant(w_in)));
    expect_gradient(download(ctx_, tape_.gradient(loss, input, {})), by_input, to<double>(x));
    tape_.backward(loss);
    params_.end_step(ctx_);
    expect_gradient(gather(&Param::gradient), by_params, theta, 1e-4, 300);
  }
}

// The penalty's second derivative two ways: through the tape, and through the fused op; alone, and times a factor.
TEST_P(Layers, GradientPenaltyBothWays) {
  for (const auto& [act, factor] :
       {std::pair{Activation::Tanh, 1.0f}, {Activation::Tanh, -0.5f}, {Activation::Relu, 1.0f}}) {
    ParamStore params("discriminator");
    const Mlp net(params, "net", {5, 32, 32, 1}, act);
    params.allocate(ctx_);
    params.initialise(ctx_, 4);
    const Mat<const float> x = in_memory(normal(13 * 5, 8), 13, 5);
    std::vector<double> loss;
    std::vector<std::vector<float>> gradient;
    for (const bool fused : {true, false}) {
      tape_.begin(params);
      const Tensor penalty =
          fused ? gradient_penalty(tape_, x, net, 10.0f) : gradient_penalty_composed(tape_, x, net, 10.0f);
      tape_.backward(factor == 1.0f ? penalty : scale(tape_, penalty, factor));
      params.end_step(ctx_);
      loss.push_back(static_cast<double>(download_scalar(ctx_, penalty)));
      gradient.push_back(download(ctx_, params.gradients()));
    }
    EXPECT_NEAR(loss[0], loss[1], 1e-5 * loss[1]);
    expect_within(gradient[0], to<double>(gradient[1]), 1e-5);
    double largest = 0;
    for (const float g : gradient[0]) largest = std::max(largest, std::abs(static_cast<double>(g)));
    EXPECT_GT(largest, 1e-3);  // not two zeros
  }
}

// Both ways also against differences of the penalty itself, computed in double.
TEST_P(Layers, GradientPenaltyAgainstCentralDifferences) {
  const std::vector<int64_t> sizes = {3, 8, 8, 1};
  const Mlp net(params_, "net", sizes, Activation::Tanh);
  params_.allocate(ctx_);
  params_.initialise(ctx_, 5);
  const int64_t n = 4, d = 3;
  const auto x = normal(n * d, 9);
  const NetReference want{sizes, Activation::Tanh};
  const Function penalty = [&](const std::vector<double>& theta) {
    double total = 0;
    for (int64_t i = 0; i < n; ++i) {
      double squares = 0;
      for (int64_t k = 0; k < d; ++k) {
        const auto at = [&](double step) {
          reference::Matrix<double> row(1, d, std::vector<float>(x.begin() + i * d, x.begin() + (i + 1) * d));
          row(0, k) += step;
          return want(theta, row)(0, 0);
        };
        const double slope = (at(1e-4) - at(-1e-4)) / 2e-4;
        squares += slope * slope;
      }
      total += 10 * (std::sqrt(squares) - 1) * (std::sqrt(squares) - 1) / static_cast<double>(n);
    }
    return total;
  };
  const auto theta = to<double>(gather(&Param::value));
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(fused ? "fused" : "composed");
    tape_.begin(params_);
    const Mat<const float> in = in_memory(x, n, d);
    const Tensor loss =
        fused ? gradient_penalty(tape_, in, net, 10.0f) : gradient_penalty_composed(tape_, in, net, 10.0f);
    expect_within(download_scalar(ctx_, loss), penalty(theta), 1e-4);
    tape_.backward(loss);
    params_.end_step(ctx_);
    expect_gradient(gather(&Param::gradient), penalty, theta, 1e-3, 200);
  }
}

// The discriminator's whole loss: the net's gradient and the penalty's meet in the same parameters.
TEST_P(Layers, PenaltyAddsToTheNetsOwnGradient) {
  const Mlp net(params_, "net", {4, 16, 16, 1}, Activation::Tanh);
  params_.allocate(ctx_);
  params_.initialise(ctx_, 6);
  const Mat<const float> x = in_memory(normal(10 * 4, 3), 10, 4);
  const auto gradient = [&](bool with_bce, bool with_penalty) {
    tape_.begin(params_);
    Tensor loss = tape_.full(1, 1, 0.0f);
    if (with_penalty)
      loss = add(tape_, loss, scale(tape_, gradient_penalty(tape_, x.slice_rows(0, 5), net, 10.0f), 2.0f));
    if (with_bce) loss = add(tape_, loss, bce(tape_, mlp(tape_, tape_.constant(x), net), 5));
    tape_.backward(loss);
    params_.end_step(ctx_);
    return to<double>(download(ctx_, params_.gradients()));
  };
  const auto bce_alone = gradient(true, false), penalty_alone = gradient(false, true);
  const auto both = to<float>(gradient(true, true));
  std::vector<double> want(both.size());
  for (size_t i = 0; i < want.size(); ++i) want[i] = bce_alone[i] + penalty_alone[i];
  expect_within(both, want, 1e-6);
}

// What the fused network relies on: d_x may take the place of x, for wide layers and for heads.
TEST_P(Layers, GradientInPlaceOfTheActivations) {
  const int64_t n = 67;
  for (const int64_t in : {int64_t{5}, int64_t{64}, int64_t{257}}) {
    for (const int64_t out : {int64_t{1}, int64_t{3}, int64_t{64}, int64_t{300}}) {
      for (const Activation act : {Activation::Relu, Activation::Tanh}) {
        const Mat<const float> d = in_memory(normal(n * out, 1), n, out),
                               w = in_memory(normal(out * in, 2), out, in);
        Array<float> x(ctx_, n * in), d_x(ctx_, n * in);
        upload(ctx_, x.view(), uniform(n * in, -0.9f, 0.9f, 3));
        linear_backward_input(ctx_, {d, w, x.matrix(n, in), act, d_x.matrix(n, in)});
        linear_backward_input(ctx_, {d, w, x.matrix(n, in), act, x.matrix(n, in)});
        EXPECT_EQ(download(ctx_, x.view()), download(ctx_, d_x.view())) << in << " to " << out;
      }
    }
  }
}

TEST_P(Layers, PredictIsTheNetInChunks) {
  const Mlp net(params_, "net", {5, 160, 33, 24, 3}, Activation::Relu);  // hidden layers of three strides
  params_.allocate(ctx_, true);
  params_.initialise(ctx_, 2);
  for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{1024}, int64_t{2500}}) {
    const Mat<const float> x = in_memory(normal(n * 5, 4), n, 5);
    Array<float> y(ctx_, n * 3);
    net.predict(ctx_, x, y.matrix(n, 3));
    tape_.begin(params_);
    const auto want = download(ctx_, mlp(tape_, tape_.constant(x), net));
    expect_within(download(ctx_, y.view()), to<double>(want), 1e-6);
    Array<float> averaged(ctx_, n * 3);
    net.predict(ctx_, x, averaged.matrix(n, 3), Weights::Average);
    EXPECT_EQ(download(ctx_, averaged.view()), download(ctx_, y.view()));
  }
}

TEST_P(Layers, PredictUsesNoMoreScratchThanItSays) {
  const std::vector<int64_t> sizes = {5, 64, 64, 3};
  Context small(ContextOptions{
      .backend = GetParam(), .threads = 2, .scratch_bytes = Mlp::predict_scratch_bytes(sizes)});
  ParamStore params("net");
  const Mlp net(params, "net", sizes, Activation::Relu);
  params.allocate(small);
  params.initialise(small, 2);
  Array<float> x(small, 5000 * 5), y(small, 5000 * 3);
  fill(small, x.view(), 0.5f);
  net.predict(small, x.matrix(5000, 5), y.matrix(5000, 3));
  EXPECT_EQ(small.scratch().used(), 0u);
}

TEST_P(Layers, BadShapes) {
  const Mlp net(params_, "net", {5, 16, 3}, Activation::Relu);
  params_.allocate(ctx_);
  params_.initialise(ctx_, 2);
  tape_.begin(params_);
  const Mat<const float> x = in_memory(normal(8), 2, 4);
  expect_error(ErrorCode::InvalidArgument, "mlp: x has 4 columns, the net expects 5",
               [&] { mlp(tape_, tape_.constant(x), net); });
  expect_error(ErrorCode::InvalidArgument, "gradient_penalty: expects two hidden layers",
               [&] { gradient_penalty(tape_, x, net, 10.0f); });
  Array<float> y(ctx_, 6);
  expect_error(ErrorCode::InvalidArgument, "mlp: 2 x 4 to 2 x 3",
               [&] { net.predict(ctx_, x, y.matrix(2, 3)); });
}

}  // namespace
}  // namespace pwdice::test
