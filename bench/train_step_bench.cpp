// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Training steps, each the trainer's own (models/): draw a batch, forward, loss, backward, Adam.
//   step/discriminator/512[/ant]    512 expert and 512 other states, [256, 256] tanh, gradient penalty on 512
//   mixes step/bc/1024[/ant]              weighted behaviour cloning, [256, 256] ReLU
//   mlp/forward_backward/1024       11-256-256-1 ReLU with a squared error, no update
// Before it is timed a step runs on data that consist of one state: there the loss does not depend on what is
// drawn, and must be what double code computes from the same weights.
#include <memory>

#include "../host/functions.h"
#include "../models/discriminator.h"
#include "../models/policy.h"
#include "baseline.h"
#include "suite.h"

namespace pwdice::bench {
namespace {

struct Task {
  const char* suffix;
  int64_t state_dim, action_dim;
};
constexpr Task kTasks[] = {{"", 11, 3}, {"/ant", 111, 8}};
constexpr int64_t kWidth = Discriminator::kWidth;
constexpr uint64_t kSeed = 7;

// `distinct` transitions, half as many expert states.
DataTables make_data(Context& ctx, const Task& task, int64_t distinct) {
  Mixture mixture;
  Transitions& t = mixture.offline;
  t.state_dim = task.state_dim, t.action_dim = task.action_dim;
  t.states = random_values((distinct + 1) * task.state_dim, 1, 1);
  t.actions = random_values(distinct * task.action_dim, 0.5, 2);
  for (float& a : t.actions) a = std::tanh(a);
  for (int64_t i = 0; i < distinct; ++i) {
    t.next.push_back(static_cast<int32_t>(i + 1));
    t.step.push_back(static_cast<int32_t>(i));
  }
  t.done.assign(static_cast<size_t>(distinct), 0), t.source.assign(static_cast<size_t>(distinct), 0);
  Expert& e = mixture.expert;
  const int64_t experts = std::max<int64_t>(1, distinct / 2);
  e.state_dim = task.state_dim;
  e.states.assign(t.states.begin(), t.states.begin() + experts * task.state_dim);
  e.weight.assign(static_cast<size_t>(experts), 1.f / static_cast<float>(experts));
  mixture.state_map.normalizer = Normalizer::identity(task.state_dim);
  return DataTables(ctx, std::move(mixture), 0.99);
}

std::vector<double> state_of(const DataTables& data) {
  return {data.states().row(0), data.states().row(0) + data.state_dim()};
}

// -- what the loss must be -------------------------------------------------------------------------------

struct Weights {
  Mat<const float> w[3];
  const float* b[3];

  explicit Weights(ParamStore& params) {
    for (int l = 0; l < 3; ++l) {
      const std::string name = "net." + std::to_string(l);
      w[l] = params.find(name + ".weight").value(), b[l] = params.find(name + ".bias").value().data;
    }
  }
};

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double discriminator_loss(const Weights& net, const std::vector<double>& x) {
  const auto h1 = layer(net.w[0], net.b[0], x, Activation::Tanh),
             h2 = layer(net.w[1], net.b[1], h1, Activation::Tanh);
  const double h = layer(net.w[2], net.b[2], h2, Activation::None)[0];
  const double norm = gradient_norm(net.w[0], net.b[0], net.w[1], net.b[1], net.w[2], x, Activation::Tanh);
  const double excess = norm - 1;
  return softplus(-h) + softplus(h) + 10 * excess * excess;
}

double policy_loss(const Weights& net, const std::vector<double>& x, const float* action) {
  const auto h1 = layer(net.w[0], net.b[0], x, Activation::Relu),
             h2 = layer(net.w[1], net.b[1], h1, Activation::Relu);
  const std::vector<double> head = layer(net.w[2], net.b[2], h2, Activation::None);
  double loss = 0;
  for (size_t k = 0, n = head.size() / 2; k < n; ++k) {
    const double a = static_cast<double>(action[k]), logvar = 7 * std::tanh(head[n + k]) - 3;
    const double miss = std::atanh(a) - head[k];
    loss +=
        0.5 * (std::log(2 * M_PI) + logvar + miss * miss * std::exp(-logvar)) + std::log(1 - a * a + 1e-10);
  }
  return loss;
}

// -- what a step needs -----------------------------------------------------------------------------------

// Forward, weight gradients, and input gradients of all layers but the first.
Work mlp_work(int64_t rows, int64_t in, int64_t out) {
  const auto n = static_cast<double>(rows), w = static_cast<double>(kWidth);
  const double layers = static_cast<double>(in) * w + w * w + w * static_cast<double>(out);
  return {2 * n * (3 * layers - static_cast<double>(in) * w)};
}

// The products of kernels/gradient_penalty.h: h2, v1, m, a2 W2, d_W2 twice are n m m; h1, g, p, d_W1 twice n
// m d.
Work penalty_work(int64_t rows, int64_t in) {
  const auto n = static_cast<double>(rows), w = static_cast<double>(kWidth), d = static_cast<double>(in);
  return {2 * n * (6 * w * w + 5 * w * d), 0, 2 * n * w};
}

// -- benchmarks ------------------------------------------------------------------------------------------

void add_discriminator(Suite& suite, const Task& task) {
  constexpr int64_t kBatch = 512;
  const Work hidden{0, 2.0 * kBatch, 4.0 * kBatch * static_cast<double>(kWidth)};
  const Work work = mlp_work(2 * kBatch, task.state_dim, 1) + hidden + penalty_work(kBatch, task.state_dim);
  add("step/discriminator/512" + std::string(task.suffix), [&suite, task, work](benchmark::State& state) {
    Context& ctx = suite.ctx;
    {
      const DataTables one = make_data(ctx, task, 1);
      Discriminator net(ctx, one, {.batch = kBatch}, kSeed);
      const double want = discriminator_loss(Weights(net.optimiser().params()), state_of(one));
      net.step(ctx);
      if (!close(net.optimiser().report(ctx).loss, want, want))
        return fail(state, "the loss is wrong");
    }
    const DataTables data = make_data(ctx, task, 4096);
    Discriminator net(ctx, data, {.batch = kBatch}, kSeed);
    time_iterations(state, suite.ctx, suite.machine, work, [&] { net.step(ctx); });
  });
}

void add_policy(Suite& suite, const Task& task) {
  constexpr int64_t kBatch = 1024;
  const double heads = static_cast<double>(kBatch * task.action_dim);
  const Work work = mlp_work(kBatch, task.state_dim, 2 * task.action_dim) + Work{0, heads, heads};
  add("step/bc/1024" + std::string(task.suffix), [&suite, task, work](benchmark::State& state) {
    Context& ctx = suite.ctx;
    const auto make = [&](const DataTables& data) {
      auto actor =
          std::make_unique<Actor>(ctx, data, ActorOptions{.weighted_draws = false, .batch = kBatch}, kSeed);
      actor->use_equal_weights(ctx);
      return actor;
    };
    {
      const DataTables one = make_data(ctx, task, 1);
      const auto actor = make(one);
      const double want =
          policy_loss(Weights(actor->optimiser().params()), state_of(one), one.actions().row(0));
      actor->step(ctx);
      const float loss = actor->optimiser().report(ctx).loss;
      if (!close(loss, want, std::abs(want) + 1)) return fail(state, "the loss is wrong");
    }
    const DataTables data = make_data(ctx, task, 4096);
    const auto actor = make(data);
    time_iterations(state, suite.ctx, suite.machine, work, [&] { actor->step(ctx); });
  });
}

void add_mlp(Suite& suite) {
  constexpr int64_t kBatch = 1024, kIn = 11;
  add("mlp/forward_backward/1024", [&suite](benchmark::State& state) {
    Context& ctx = suite.ctx;
    ParamStore params("mlp");
    const Mlp net(params, "net", {kIn, kWidth, kWidth, 1}, Activation::Relu);
    params.allocate(ctx), params.initialise(ctx, kSeed);
    const std::vector<float> x = random_values(kBatch * kIn, 1, 1), target = random_values(kBatch, 1, 2);
    Tape tape(ctx);
    const auto pass = [&] {
      tape.begin(params);
      const Tensor y = mlp(tape, tape.constant(Mat<const float>(x.data(), kBatch, kIn)), net);
      const Tensor t = tape.constant(Vec<const float>{target.data(), kBatch});
      tape.backward(mean(tape, square(tape, sub(tape, y, t))));
    };
    // The last bias's gradient is the mean of 2 (y - t).
    pass();
    const Weights weights(params);
    double want = 0;
    for (int64_t i = 0; i < kBatch; ++i) {
      const std::vector<double> row(x.begin() + i * kIn, x.begin() + (i + 1) * kIn);
      const auto h1 = layer(weights.w[0], weights.b[0], row, Activation::Relu);
      const auto h2 = layer(weights.w[1], weights.b[1], h1, Activation::Relu);
      const double y = layer(weights.w[2], weights.b[2], h2, Activation::None)[0];
      want += 2 * (y - static_cast<double>(target[static_cast<size_t>(i)])) / kBatch;
    }
    const float got = *params.find("net.2.bias").gradient().data;
    if (!close(got, want, 1)) return fail(state, "the gradient is wrong");
    time_iterations(state, suite.ctx, suite.machine, mlp_work(kBatch, kIn, 1), pass);
  });
}

}  // namespace

void register_train_steps(Suite& suite) {
  for (const Task& task : kTasks) add_discriminator(suite, task);
  for (const Task& task : kTasks) add_policy(suite, task);
  add_mlp(suite);
}

}  // namespace pwdice::bench
