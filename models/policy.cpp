// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "policy.h"

#include <algorithm>

#include "../host/functions.h"
#include "../kernels/scan.h"

namespace pwdice {

Actor::Actor(Context& ctx, const DataTables& data, const ActorOptions& options, uint64_t seed)
    : data_(data),
      options_(options),
      net_(params_, "net", {data.state_dim(), kWidth, kWidth, 2 * data.action_dim()}, Activation::Relu),
      stream_(random_stream(seed, "policy/transitions")),
      counter_(ctx),
      w_(ctx, data.transitions()),
      cumulative_(ctx, data.transitions()),
      kept_index_(ctx, data.transitions()),
      index_(ctx, options.batch),
      s_(ctx, options.batch * data.state_dim()),
      action_(ctx, options.batch * data.action_dim()),
      batch_weight_(ctx, options.batch),
      optimiser_((params_.allocate(ctx, options.adam.ema_decay.has_value()), params_.initialise(ctx, seed), ctx),
                 params_, options.adam),
      tape_(ctx) {
  fill(ctx, batch_weight_.view(), 1);
  fill(ctx, w_.view(), 0);
}

void Actor::use_weights(Context& ctx) {
  if (options_.weighted_draws) {
    cumulative_sum(ctx, {w_.view(), cumulative_.view()});
    kept_ = data_.transitions();
  } else {
    find_kept(ctx);
  }
}

void Actor::use_equal_weights(Context& ctx) {
  fill(ctx, w_.view(), 1);
  use_weights(ctx);
}

// The transitions that uniform draws may return. Their number is part of the captured step, so that is made anew.
void Actor::find_kept(Context& ctx) {
  const std::vector<float> w = download(ctx, w_.view());
  std::vector<int32_t> kept;
  for (size_t i = 0; i < w.size(); ++i) {
    if (w[i] >= static_cast<float>(options_.keep)) kept.push_back(static_cast<int32_t>(i));
  }
  if (kept.empty()) fail(ErrorCode::NotFinite, "policy: no transition has a weight of at least {}", options_.keep);
  kept_ = static_cast<int64_t>(kept.size());
  upload(ctx, kept_index_.view().slice(0, kept_), std::span<const int32_t>(kept));
  captured_.reset();
}

void Actor::draw(Context& ctx) {
  const Vec<int32_t> index = index_.view();
  const Draw draw{stream_, counter_.view()};
  if (options_.weighted_draws) {
    draw_weighted(ctx, draw, cumulative_.view(), index);
  } else {
    sample_shuffled(ctx, {draw.stream, draw.step, kept_, index});
    gather_indices(ctx, {kept_index_.view().slice(0, kept_), index, index});
    gather_values(ctx, {w_.view(), index, batch_weight_.view()});
  }
  gather_rows(ctx, {data_.states(), index, s_.matrix(options_.batch, data_.state_dim())});
  gather_rows(ctx, {data_.actions(), index, action_.matrix(options_.batch, data_.action_dim())});
}

void Actor::step(Context& ctx) {
  PWDICE_CHECK(kept_ > 0, "policy: step before the first use_weights");
  captured_.run(ctx, [&] {
    draw(ctx);
    tape_.begin(params_);
    const Tensor head = mlp(tape_, tape_.constant(s_.matrix(options_.batch, data_.state_dim())), net_);
    const Tensor loss = policy_nll(tape_, head, action_.matrix(options_.batch, data_.action_dim()), batch_weight_.view());
    tape_.backward(loss);
    optimiser_.step(ctx, loss);
    counter_.advance(ctx);
  });
}

std::vector<StateSpan> Actor::state() const {
  auto spans = optimiser_.state();
  spans.push_back({"policy/counter", counter_.state().data, sizeof(uint64_t)});
  spans.push_back({"policy/weights", w_.view().data, static_cast<size_t>(w_.size()) * sizeof(float)});
  return spans;
}

}  // namespace pwdice
