// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "../datasets/sampler.h"
#include "../host/layers.h"
#include "../host/optim.h"
#include "../host/rng.h"
#include "../kernels/capture.h"

namespace pwdice {

// h: S -> 256 -> 256 -> 1, tanh; at its optimum h = log dE/((1 - a) dI + a dE) (paper, section 3.2).
//   loss = mean softplus(-h(E)) + mean softplus(h(N)) + penalty mean_k (|grad h(x_k)| - 1)^2
// N is drawn from I, and with probability a (`mixing`) the whole of it from E; x_k = u_k E_k + (1 - u_k) N_k.
struct DiscriminatorOptions {
  int64_t batch = 512;
  float penalty = 10;
  double mixing = 0.01;
  AdamOptions adam{.learning_rate = 3e-4f};
};

class Discriminator {
 public:
  static constexpr int64_t kWidth = 256;

  Discriminator(Context& ctx, const DataTables& data, const DiscriminatorOptions& options, uint64_t seed);

  void step(Context& ctx);
  // R(s) = h(s) - log(1 - a^2): what the released code computes through a sigmoid, without its overflow.
  void reward(Context& ctx, Mat<const float> states, Vec<float> r) const;

  Optimiser& optimiser() { return optimiser_; }
  std::vector<StateSpan> state() const;
  void restored(Context& ctx) { steps_ = counter_.get(ctx); }  // after the state was loaded

 private:
  bool negatives_from_expert() const;
  void draw(Context& ctx, bool negatives_from_expert);

  const DataTables& data_;
  DiscriminatorOptions options_;
  ParamStore params_{"discriminator"};
  Mlp net_;
  RandomStream expert_, negative_, mixing_, choice_;
  StepCounter counter_;
  uint64_t steps_ = 0;  // the counter's value as the host knows it
  Array<int32_t> index_;
  Array<float> batch_;  // (2 batch, S): expert, then negatives
  Array<float> mixed_, u_;
  Optimiser optimiser_;
  Tape tape_;
  CapturedStep captured_[2];  // negatives from I, from E
};

}  // namespace pwdice
