// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>

#include "../datasets/sampler.h"
#include "../host/functions.h"
#include "../host/layers.h"
#include "../host/optim.h"
#include "../host/rng.h"
#include "../kernels/capture.h"

namespace pwdice {

// The contrastive state embedding g (paper, section 3.3): states one step apart are close, others are not.
//   v = net(s), net S -> 128 -> 128 -> 32 ReLU; InfoNCE of v(s_i) against v(s'_j) over the batch
//   g(s) = v/|v|, or v (learned)
//   learned_spd_normalised: scores are cosines of z W0, z = v/|v|, over 0.1. Without its second normalisation that is
//   learned_spd, (z W0)(z' W0)^T; g is z in both.
// Its step: pairs with done = 0 drawn uniformly, forward, loss and backward in one sweep, clip, Adam.
struct EncoderOptions {
  std::string metric = "learned_pd";  // or learned_spd, learned_spd_normalised, learned, learned_sphere
  int64_t batch = 4096;
  AdamOptions adam{.learning_rate = 1e-3f, .clip_norm = 1.f};
};

class Encoder {
 public:
  static constexpr int64_t kWidth = 128, kEmbedding = 32;

  Encoder(Context& ctx, const DataTables& data, const EncoderOptions& options, uint64_t seed);

  void step(Context& ctx);
  // g of any number of states.
  void embed(Context& ctx, Mat<const float> states, Mat<float> g) const;

  Optimiser& optimiser() { return optimiser_; }
  std::vector<StateSpan> state() const;

 private:
  void draw(Context& ctx);
  Tensor contrastive_loss(const Tensor& v);

  const DataTables& data_;
  EncoderOptions options_;
  InfoNceOptions score_;
  bool mapped_;  // z W0 is normalised before it is scored
  ParamStore params_{"encoder"};
  Mlp net_;
  Param w0_;
  RandomStream stream_;
  StepCounter counter_;
  Array<int32_t> index_;
  Array<float> pairs_;  // (2 batch, S): s of every pair, then s'
  Optimiser optimiser_;
  Tape tape_;
  CapturedStep captured_;
};

}  // namespace pwdice
