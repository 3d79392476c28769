// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The four training steps of PW-DICE at any size, drawn, computed and applied as a trainer does it: what the
// tests of allocation, determinism and capture run.

#include <memory>

#include "../host/functions.h"
#include "../host/layers.h"
#include "../host/optim.h"
#include "../host/rng.h"
#include "../kernels/gather.h"
#include "../kernels/sample.h"
#include "op_case.h"

namespace pwdice::test {

struct StepSizes {
  int64_t batch = 32, state = 5, action = 2, width = 16, embedding = 8, population = 200;
};

// What every step has: a batch drawn on a stream of its own, a tape, a store and its optimiser.
class TrainStep {
 public:
  TrainStep(Context& ctx, const StepSizes& sizes, const char* name)
      : ctx_(ctx),
        sizes_(sizes),
        params_(name),
        counter_(ctx),
        index_(ctx, sizes.batch),
        tape_(ctx),
        stream_(random_stream(7, name)),
        data_(ctx, sizes.population * sizes.state) {
    upload(ctx, data_.view(), normal(sizes.population * sizes.state, 30));
  }
  virtual ~TrainStep() = default;

  void run() {
    tape_.begin(params_);
    const Tensor loss = build();
    tape_.backward(loss);
    optimiser_->step(ctx_, loss);
    counter_.advance(ctx_);
  }
  std::vector<float> values() { return download(ctx_, params_.values()); }
  Array<float>& data() { return data_; }
  Optimiser& optimiser() { return *optimiser_; }

 protected:
  virtual Tensor build() = 0;

  void start(const AdamOptions& options) {
    params_.allocate(ctx_, options.ema_decay.has_value());
    params_.initialise(ctx_, 11);
    optimiser_ = std::make_unique<Optimiser>(ctx_, params_, options);
  }
  // Rows of the data for rows [part * batch, ...) of a batch of several parts.
  void draw(Mat<float> rows, uint64_t use) {
    const RandomStream stream{stream_.seed, stream_.stream + use};
    sample_uniform(ctx_, {stream, counter_.view(), sizes_.population, index_.view()});
    gather_rows(ctx_, {data_.matrix(sizes_.population, sizes_.state), index_.view(), rows});
  }
  Mat<float> draw_parts(int64_t parts) {
    const int64_t n = sizes_.batch;
    const Mat<float> rows = tape_.output(parts * n, sizes_.state);
    for (int64_t k = 0; k < parts; ++k) draw(rows.slice_rows(k * n, n), static_cast<uint64_t>(k));
    return rows;
  }

  Context& ctx_;
  StepSizes sizes_;
  ParamStore params_;
  StepCounter counter_;
  Array<int32_t> index_;
  Tape tape_;
  RandomStream stream_;
  Array<float> data_;
  std::unique_ptr<Optimiser> optimiser_;
};

class DiscriminatorStep : public TrainStep {
 public:
  DiscriminatorStep(Context& ctx, const StepSizes& s)
      : TrainStep(ctx, s, "discriminator"),
        net_(params_, "net", {s.state, s.width, s.width, 1}, Activation::Tanh) {
    start({});
  }

 protected:
  Tensor build() override {
    const int64_t n = sizes_.batch;
    const Mat<float> batch = draw_parts(2), mixed = tape_.output(n, sizes_.state);
    const Vec<float> u = tape_.arena().take<float>(n);
    sample_real(ctx_, {stream_, counter_.view(), u});
    mix_rows(ctx_, {batch.slice_rows(0, n), batch.slice_rows(n, n), u, mixed});
    const Tensor penalty = gradient_penalty(tape_, mixed, net_, 10.0f);
    const Tensor logits = mlp(tape_, tape_.constant(batch), net_);
    return add(tape_, bce(tape_, logits, n), penalty);
  }

 private:
  Mlp net_;
};

class EncoderStep : public TrainStep {
 public:
  EncoderStep(Context& ctx, const StepSizes& s)
      : TrainStep(ctx, s, "encoder"),
        net_(params_, "net", {s.state, s.width, s.width, s.embedding}, Activation::Relu),
        w0_(params_.add("w0", s.embedding, s.embedding, Init::uniform(0, 1))) {
    start({.learning_rate = 1e-3f, .clip_norm = 1.0f});
  }

 protected:
  Tensor build() override {
    const Tensor v = mlp(tape_, tape_.constant(draw_parts(2)), net_);
    return infonce(tape_, v, tape_.parameter(w0_));
  }

 private:
  Mlp net_;
  Param w0_;
};

// One trunk call on the rows of all sub-batches; columns of its head feed the losses.
class DualStep : public TrainStep {
 public:
  DualStep(Context& ctx, const StepSizes& s)
      : TrainStep(ctx, s, "dual"),
        net_(params_, "net", {s.state, s.width, s.width, 3}, Activation::Relu),
        discount_(ctx, s.batch),
        q_(ctx, s.batch),
        reward_(ctx, s.batch) {
    start({.ema_decay = 0.99f});
    fill(ctx, discount_.view(), 0.99f);
    fill(ctx, q_.view(), 1.0f / static_cast<float>(s.batch));
    fill(ctx, reward_.view(), 0.0f);
  }

 protected:
  Tensor build() override {
    const int64_t n = sizes_.batch;
    const Mat<float> x = draw_parts(5);  // s, s', initial, s1, expert
    const Tensor head = mlp(tape_, tape_.constant(x), net_);
    const auto part = [&](int64_t potential, int64_t rows) {
      return column(tape_, head, potential, rows * n, n);
    };
    const Tensor flow = bellman(tape_, part(0, 0), part(0, 1), part(1, 0), discount_.view(), part(0, 2),
                                {.init_weight = 0.01f, .eps = 0.5f});
    const PairCost cost{Distance::SquaredEuclidean, 0.1f, x.slice_rows(3 * n, n), x.slice_rows(4 * n, n),
                        reward_.view()};
    const Tensor l2 = part(2, 4);
    const Tensor transport = transport_joint(tape_, cost, part(1, 3), l2, q_.view(), 0.5f);
    return add(tape_, add(tape_, flow, transport), negate(tape_, mean(tape_, l2)));
  }

 private:
  Mlp net_;
  Array<float> discount_, q_, reward_;
};

class PolicyStep : public TrainStep {
 public:
  PolicyStep(Context& ctx, const StepSizes& s)
      : TrainStep(ctx, s, "policy"),
        net_(params_, "net", {s.state, s.width, s.width, 2 * s.action}, Activation::Relu),
        action_(ctx, s.batch * s.action),
        weight_(ctx, s.batch) {
    start({.learning_rate = 1e-3f, .weight_decay = 1e-5f});
    upload(ctx, action_.view(), uniform(s.batch * s.action, -0.9f, 0.9f, 31));
    fill(ctx, weight_.view(), 1.0f);
  }

 protected:
  Tensor build() override {
    const Tensor head = mlp(tape_, tape_.constant(draw_parts(1)), net_);
    return policy_nll(tape_, head, action_.matrix(sizes_.batch, sizes_.action), weight_.view());
  }

 private:
  Mlp net_;
  Array<float> action_, weight_;
};

inline std::vector<std::unique_ptr<TrainStep>> all_train_steps(Context& ctx, const StepSizes& sizes) {
  std::vector<std::unique_ptr<TrainStep>> steps;
  steps.push_back(std::make_unique<DiscriminatorStep>(ctx, sizes));
  steps.push_back(std::make_unique<EncoderStep>(ctx, sizes));
  steps.push_back(std::make_unique<DualStep>(ctx, sizes));
  steps.push_back(std::make_unique<PolicyStep>(ctx, sizes));
  return steps;
}

}  // namespace pwdice::test
