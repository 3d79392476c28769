// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "optim.h"

#include "../kernels/elementwise.h"
#include "../kernels/reduce.h"

namespace pwdice {

Optimiser::Optimiser(Context& ctx, ParamStore& params, const AdamOptions& options)
    : params_(params), options_(options), t_(ctx, 1), scalars_(ctx, 5) {
  params.check_context("optimiser", ctx);
  PWDICE_CHECK(options.learning_rate >= 0, "{}: learning rate {}", params.name(), options.learning_rate);
  PWDICE_CHECK(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
               "{}: betas {} and {}, expected at least 0 and below 1", params.name(), options.beta1,
               options.beta2);
  PWDICE_CHECK(options.eps > 0 && options.weight_decay >= 0, "{}: eps {} and weight decay {}", params.name(),
               options.eps, options.weight_decay);
  PWDICE_CHECK(options.clip_norm.value_or(1) > 0, "{}: clip norm {}", params.name(),
               options.clip_norm.value_or(1));
  PWDICE_CHECK(!options.ema_decay || params.has_average(),
               "{}: an average is asked for, but the store has none", params.name());
  rate_ = scalars_.view().slice(0, 1);
  scale_ = scalars_.view().slice(1, 1);
  finite_ = scalars_.view().slice(2, 1);
  ok_ = scalars_.view().slice(3, 1);
  norm_ = scalars_.view().slice(4, 1);
  upload(ctx, scalars_.view(), std::vector<float>{options.learning_rate, 1, 1, 1, 0});
  fill_zero(ctx, t_.view().data, sizeof(int64_t));
}

void Optimiser::step(Context& ctx, const Tensor& loss) {
  PWDICE_CHECK(loss.size() == 1, "{}: the loss is {} x {}, expected a scalar", params_.name(), loss.rows(),
               loss.cols());
  params_.check_context("optimiser.step", ctx);
  params_.end_step(ctx);
  const Vec<const float> grad = params_.gradients();
  const Vec<float> grad_and_loss = params_.gradients_and_loss();
  copy_bytes(ctx, grad_and_loss.data + grad.size, loss.view.data, sizeof(float));
  all_finite(ctx, {grad_and_loss, finite_});
  binary_map(ctx, {Binary::Multiply, ok_, finite_, ok_});  // once 0 it stays 0 until check() has told
  if (!ctx.on_gpu() && ok_[0] == 0) fail_not_finite(ctx);
  if (options_.clip_norm) clip_scale(ctx, {grad, *options_.clip_norm, norm_, scale_});
  adam(ctx, {options_.beta1, options_.beta2, options_.eps, options_.weight_decay, rate_, scale_, ok_,
             t_.view(), grad, params_.values(), params_.first_moments(), params_.second_moments()});
  if (options_.ema_decay) ema(ctx, {*options_.ema_decay, ok_, params_.values(), params_.average()});
}

void Optimiser::set_learning_rate(Context& ctx, float value) {
  PWDICE_CHECK(value >= 0, "{}: learning rate {}", params_.name(), value);
  options_.learning_rate = value;
  fill(ctx, rate_, value);  // unlike an upload it does not wait for the device
}

Optimiser::Report Optimiser::report(Context& ctx) {
  Report report;
  report.gradient_norm = gradient_norm(ctx);
  const Vec<float> grad_and_loss = params_.gradients_and_loss();
  report.loss = download(ctx, grad_and_loss.slice(grad_and_loss.size - 1, 1))[0];
  report.learning_rate = download(ctx, rate_)[0];
  report.steps = download(ctx, t_.view())[0];
  return report;
}

void Optimiser::check(Context& ctx) {
  if (download(ctx, ok_)[0] == 0) fail_not_finite(ctx);
}

float Optimiser::gradient_norm(Context& ctx) {
  reduce_norm(ctx, {params_.gradients(), norm_});
  return download(ctx, norm_)[0];
}

void Optimiser::fail_not_finite(Context& ctx) {
  const Report last = report(ctx);
  fill(ctx, ok_, 1.0f);
  if (ctx.on_gpu()) {  // steps may have been replayed since the one that failed
    fail(ErrorCode::NotFinite,
         "{}: the loss or gradient of step {} is not finite, its parameters are those before it",
         params_.name(), last.steps + 1);
  }
  fail(ErrorCode::NotFinite,
       "{}: step {} has loss {} and gradient norm {}, its parameters are those before it", params_.name(),
       last.steps + 1, last.loss, last.gradient_norm);
}

std::vector<StateSpan> Optimiser::state() const {
  std::vector<StateSpan> spans = params_.state();
  spans.push_back({params_.name() + "/steps", t_.view().data, sizeof(int64_t)});
  spans.push_back({params_.name() + "/learning_rate", rate_.data, sizeof(float)});
  return spans;
}

}  // namespace pwdice
