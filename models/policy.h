// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "../datasets/sampler.h"
#include "../host/layers.h"
#include "../host/optim.h"
#include "../host/rng.h"
#include "../kernels/capture.h"
#include "policy_runtime.h"

namespace pwdice {

struct ActorOptions {
  bool weighted_draws = true;  // transitions drawn in proportion to w; false: uniformly, w in the loss
  double keep = 1e-6;          // uniform draws: transitions of smaller weight are left out
  int64_t lookahead = 1;       // this and the next three: kernels/cloning_weights.h
  double power = 1;
  bool balance_steps = false;
  double cap = 0.97;
  int64_t batch = 512;
  double gamma = 0.99;         // of the data's discounts
  bool expert_units = false;   // inputs in means and deviations of the expert's states instead of all data's
  AdamOptions adam{.learning_rate = 1e-3f, .weight_decay = 1e-5f};
};

// The policy: a tanh-Gaussian S -> 256 -> 256 -> (mean | raw), ReLU, trained by weighted behaviour cloning
// (paper, section 3.5).
class Actor {
 public:
  static constexpr int64_t kWidth = 256;

  Actor(Context& ctx, const DataTables& data, const ActorOptions& options, uint64_t seed);

  Vec<float> weights() const { return w_.view(); }
  void shape_weights(Context& ctx);      // what Potentials::weights left there becomes what cloning draws by
  void use_weights(Context& ctx);        // draws follow weights() from now on
  void use_equal_weights(Context& ctx);  // plain behaviour cloning
  int64_t kept() const { return kept_; }
  size_t order_bytes() const { return static_cast<size_t>(end_.size() + order_.size() + step_begin_.size()) * sizeof(int32_t); }

  void step(Context& ctx);

  // The mean action as a policy of raw observations: the state map is folded in.
  PolicyData export_policy(Context& ctx, const std::string& env_id) const;

  Optimiser& optimiser() { return optimiser_; }
  std::vector<StateSpan> state() const;  // the weights included

 private:
  void draw(Context& ctx);
  void find_order(Context& ctx);
  void drop_ends(Context& ctx);
  void use_expert_units(Context& ctx);
  void find_kept(Context& ctx);

  const DataTables& data_;
  ActorOptions options_;
  ParamStore params_{"policy"};
  Mlp net_;
  RandomStream stream_;
  StepCounter counter_;
  Array<float> w_;             // (n)
  Array<double> cumulative_;   // (n), for weighted draws
  Array<int32_t> end_, order_, step_begin_;  // of the episodes, for shape_weights; empty where it needs none
  Array<int32_t> kept_index_;  // (n), the first kept_ are transitions with w >= keep, for uniform draws
  int64_t kept_ = 0;
  Array<int32_t> index_;
  Array<float> s_, action_, batch_weight_;
  // With expert_units: these, and the same as a layer (diag(1/scale), -mean/scale) that draws pass through.
  Normalizer units_;
  Array<float> units_weight_, units_bias_, drawn_;
  Optimiser optimiser_;
  Tape tape_;
  CapturedStep captured_;
};

}  // namespace pwdice
