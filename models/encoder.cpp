// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "encoder.h"

#include "../kernels/row_norm.h"

namespace pwdice {
namespace {

constexpr const char* kMappedMetric = "learned_spd_normalised";

InfoNceOptions score_options(const std::string& metric) {
  constexpr float kInverseTemperature = 10;  // where scores are cosines, the reference implementation's
  if (metric == "learned_pd") return {ScoreMetric::SoftplusGram, true, 1};
  if (metric == "learned_spd") return {ScoreMetric::Gram, true, 1};
  if (metric == kMappedMetric) return {ScoreMetric::Identity, true, kInverseTemperature};  // of the mapped rows
  if (metric == "learned") return {ScoreMetric::Plain, false, 1};
  if (metric == "learned_sphere") return {ScoreMetric::Identity, true, kInverseTemperature};
  fail(ErrorCode::InvalidArgument, "encoder: there is no metric {}", metric);
}

}  // namespace

Encoder::Encoder(Context& ctx, const DataTables& data, const EncoderOptions& options, uint64_t seed)
    : data_(data),
      options_(options),
      score_(score_options(options.metric)),
      mapped_(options.metric == kMappedMetric),
      net_(params_, "net", {data.state_dim(), kWidth, kWidth, kEmbedding}, Activation::Relu),
      w0_(params_.add("w0", kEmbedding, kEmbedding, Init::uniform(0, 1))),
      stream_(random_stream(seed, "encoder/pairs")),
      counter_(ctx),
      index_(ctx, options.batch),
      pairs_(ctx, 2 * options.batch * data.state_dim()),
      optimiser_((params_.allocate(ctx), params_.initialise(ctx, seed), ctx), params_, options.adam),
      tape_(ctx) {
  PWDICE_CHECK(data.live_count() > 0, "encoder: every transition is terminal, there is no pair (s, s') to learn from");
}

void Encoder::draw(Context& ctx) {
  const int64_t n = options_.batch;
  const Vec<int32_t> index = index_.view();
  const Mat<float> pairs = pairs_.matrix(2 * n, data_.state_dim());
  draw_live(ctx, data_, {stream_, counter_.view()}, index);
  gather_rows(ctx, {data_.states(), index, pairs.slice_rows(0, n)});
  next_rows(ctx, data_, index, index);
  gather_rows(ctx, {data_.states(), index, pairs.slice_rows(n, n)});
}

// z W0 and v W0 have the same cosines, so v need not be normalised before the map.
Tensor Encoder::contrastive_loss(const Tensor& v) {
  const Tensor w0 = tape_.parameter(w0_);
  return infonce(tape_, mapped_ ? matmul(tape_, v, w0) : v, w0, score_);
}

void Encoder::step(Context& ctx) {
  params_.check_context("step", ctx);
  captured_.run(ctx, [&] {
    draw(ctx);
    tape_.begin(params_);
    const Tensor v = mlp(tape_, tape_.constant(pairs_.matrix(2 * options_.batch, data_.state_dim())), net_);
    const Tensor loss = contrastive_loss(v);
    tape_.backward(loss);
    optimiser_.step(ctx, loss);
    counter_.advance(ctx);
  });
}

void Encoder::embed(Context& ctx, Mat<const float> states, Mat<float> g) const {
  net_.predict(ctx, states, g);
  if (!score_.normalise) return;
  const Array<float> inv_norm(ctx, g.rows);
  row_norm_forward(ctx, {g, g, inv_norm.view()});
}

std::vector<StateSpan> Encoder::state() const {
  auto spans = optimiser_.state();
  spans.push_back({"encoder/counter", counter_.state().data, sizeof(uint64_t)});
  return spans;
}

}  // namespace pwdice
