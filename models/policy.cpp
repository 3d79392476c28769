// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "policy.h"

#include <algorithm>

#include "../host/functions.h"
#include "../kernels/cloning_weights.h"
#include "../kernels/elementwise.h"
#include "../kernels/episode_order.h"
#include "../kernels/linear.h"
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
  if (options.expert_units) use_expert_units(ctx);
  find_order(ctx);
}

void Actor::find_order(Context& ctx) {
  const bool ahead = options_.lookahead > 1, by_step = options_.balance_steps;
  if (!ahead && !by_step) return;
  const auto place = [&](Array<int32_t>& array, const std::vector<int32_t>& values) {
    array = Array<int32_t>(ctx, static_cast<int64_t>(values.size()));
    upload(ctx, array.view(), std::span<const int32_t>(values));
  };
  const EpisodeOrder order = order_episodes(data_.step());
  if (ahead) place(end_, order.end);
  if (by_step) place(order_, order.order), place(step_begin_, order.step_begin);
}

void Actor::shape_weights(Context& ctx) {
  cloning_weights(ctx, {options_.lookahead, static_cast<float>(options_.power), options_.balance_steps,
                        static_cast<float>(options_.cap), end_.view(), order_.view(), step_begin_.view(), w_.view()});
  drop_ends(ctx);
}

// Others may spread so far in a coordinate (a body that falls turns right over) that all the expert ever does in it is a
// tenth of a unit, and a network sees little of it. The units of E are known without any action.
void Actor::use_expert_units(Context& ctx) {
  const Mat<const float> expert = data_.expert_states();
  const int64_t d = data_.state_dim();
  const std::vector<float> states = download(ctx, Vec<const float>{expert.data, expert.size()});
  units_ = Normalizer::fit(Mat<const float>(states.data(), expert.rows, d), {});
  std::vector<float> weight(static_cast<size_t>(d * d), 0.f), bias(static_cast<size_t>(d));
  for (int64_t k = 0; k < d; ++k) {
    weight[k * d + k] = 1 / units_.scale[k];
    bias[k] = -units_.mean[k] / units_.scale[k];
  }
  units_weight_ = Array<float>(ctx, d * d), units_bias_ = Array<float>(ctx, d), drawn_ = Array<float>(ctx, options_.batch * d);
  upload(ctx, units_weight_.view(), std::span<const float>(weight));
  upload(ctx, units_bias_.view(), std::span<const float>(bias));
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
  drop_ends(ctx);
  use_weights(ctx);
}

// With absorbing states nothing that happens after the end has a weight. discount = gamma (1 - done), so that the product
// is w or 0.
void Actor::drop_ends(Context& ctx) {
  if (!data_.state_map().absorbing || options_.gamma <= 0) return;
  binary_map(ctx, {Binary::Multiply, w_.view(), data_.discount(), w_.view()});
  affine(ctx, {w_.view(), static_cast<float>(1 / options_.gamma), 0, w_.view()});
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
  const int64_t d = data_.state_dim();
  const Mat<float> s = s_.matrix(options_.batch, d);
  if (options_.expert_units) {
    const Mat<float> drawn = drawn_.matrix(options_.batch, d);
    gather_rows(ctx, {data_.states(), index, drawn});
    linear_forward(ctx, {drawn, units_weight_.matrix(d, d), units_bias_.view(), Activation::None, s});
  } else {
    gather_rows(ctx, {data_.states(), index, s});
  }
  gather_rows(ctx, {data_.actions(), index, action_.matrix(options_.batch, data_.action_dim())});
}

void Actor::step(Context& ctx) {
  params_.check_context("step", ctx);
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
