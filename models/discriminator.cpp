// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "discriminator.h"

#include <cmath>

#include "../host/functions.h"
#include "../kernels/elementwise.h"

namespace pwdice {

Discriminator::Discriminator(Context& ctx, const DataTables& data, const DiscriminatorOptions& options, uint64_t seed)
    : data_(data),
      options_(options),
      net_(params_, "net", {data.state_dim(), kWidth, kWidth, 1}, Activation::Tanh),
      expert_(random_stream(seed, "discriminator/expert")),
      negative_(random_stream(seed, "discriminator/negative")),
      mixing_(random_stream(seed, "discriminator/mixing")),
      choice_(random_stream(seed, "discriminator/choice")),
      counter_(ctx),
      index_(ctx, options.batch),
      batch_(ctx, 2 * options.batch * data.state_dim()),
      mixed_(ctx, options.batch * data.state_dim()),
      u_(ctx, options.batch),
      optimiser_((params_.allocate(ctx), params_.initialise(ctx, seed), ctx), params_, options.adam),
      tape_(ctx) {}

// Known to the host before the step, so each answer has a captured step of its own.
bool Discriminator::negatives_from_expert() const {
  return uniform01(choice_.at(steps_, 0).v[0]) < static_cast<float>(options_.mixing);
}

void Discriminator::draw(Context& ctx, bool negatives_from_expert) {
  const int64_t n = options_.batch, d = data_.state_dim();
  const Vec<int32_t> index = index_.view();
  const Mat<float> batch = batch_.matrix(2 * n, d);
  const Mat<float> expert = batch.slice_rows(0, n), negative = batch.slice_rows(n, n);

  draw_expert_uniform(ctx, data_, {expert_, counter_.view()}, index);
  gather_rows(ctx, {data_.expert_states(), index, expert});
  if (negatives_from_expert) {
    draw_expert_uniform(ctx, data_, {negative_, counter_.view()}, index);
    gather_rows(ctx, {data_.expert_states(), index, negative});
  } else {
    draw_transitions(ctx, data_, {negative_, counter_.view()}, index);
    gather_rows(ctx, {data_.states(), index, negative});
  }
  sample_real(ctx, {mixing_, counter_.view(), u_.view()});
  mix_rows(ctx, {expert, negative, u_.view(), mixed_.matrix(n, d)});
}

void Discriminator::step(Context& ctx) {
  params_.check_context("step", ctx);
  const bool from_expert = negatives_from_expert();
  captured_[from_expert].run(ctx, [&] {
    const int64_t n = options_.batch, d = data_.state_dim();
    draw(ctx, from_expert);
    tape_.begin(params_);
    // The penalty first: the backward pass of the logits then finds what their forward pass has just left in the cache.
    const Tensor penalty = gradient_penalty(tape_, mixed_.matrix(n, d), net_, options_.penalty);
    const Tensor logits = mlp(tape_, tape_.constant(batch_.matrix(2 * n, d)), net_);
    const Tensor loss = add(tape_, bce(tape_, logits, n), penalty);
    tape_.backward(loss);
    optimiser_.step(ctx, loss);
    counter_.advance(ctx);
  });
  ++steps_;
}

void Discriminator::reward(Context& ctx, Mat<const float> states, Vec<float> r) const {
  net_.predict(ctx, states, Mat<float>(r.data, r.size, 1));
  const double shift = -std::log1p(-options_.mixing * options_.mixing);
  affine(ctx, {r, 1, static_cast<float>(shift), r});
}

std::vector<StateSpan> Discriminator::state() const {
  auto spans = optimiser_.state();
  spans.push_back({"discriminator/counter", counter_.state().data, sizeof(uint64_t)});
  return spans;
}

}  // namespace pwdice
