// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// The first contrastive step under every metric: loss and gradient of W0 against plain double code.
#include "../models/encoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "op_case.h"
#include "small_run.h"

namespace pwdice::test {
namespace {

constexpr int64_t kBatch = 24, kWidth = Encoder::kEmbedding;
using Rows = std::vector<std::vector<double>>;

Rows normalised(Rows rows) {
  for (auto& row : rows) {
    double squares = 0;
    for (double v : row) squares += v * v;
    for (double& v : row) v /= std::sqrt(squares);
  }
  return rows;
}

// x op(w), w (kWidth, kWidth)
Rows times(const Rows& x, const std::vector<double>& w, bool transposed = false) {
  Rows out(x.size(), std::vector<double>(kWidth, 0.0));
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t a = 0; a < kWidth; ++a) {
      for (size_t b = 0; b < kWidth; ++b) out[i][b] += x[i][a] * w[transposed ? b * kWidth + a : a * kWidth + b];
    }
  }
  return out;
}

double info_nce(const Rows& u, const Rows& v, double inv_tau) {
  double loss = 0;
  for (size_t i = 0; i < u.size(); ++i) {
    double sum = 0, own = 0;
    for (size_t j = 0; j < v.size(); ++j) {
      double score = 0;
      for (size_t k = 0; k < kWidth; ++k) score += u[i][k] * v[j][k] * inv_tau;
      sum += std::exp(score);
      if (i == j) own = score;
    }
    loss += (std::log(sum) - own) / static_cast<double>(u.size());
  }
  return loss;
}

double reference_loss(const std::string& metric, const Rows& v1, const Rows& v2, std::vector<double> w) {
  if (metric == "learned") return info_nce(times(v1, w), v2, 1);
  const Rows z1 = normalised(v1), z2 = normalised(v2);
  if (metric == "learned_sphere") return info_nce(z1, z2, 10);
  if (metric == "learned_spd_normalised") return info_nce(normalised(times(z1, w)), normalised(times(z2, w)), 10);
  if (metric == "learned_pd") {
    for (double& v : w) v = std::log1p(std::exp(v));
  }
  return info_nce(times(times(z1, w), w, true), z2, 1);
}

// States that Encoder draws for its first step.
std::vector<int32_t> first_draw(Context& ctx, const DataTables& data, uint64_t seed) {
  const StepCounter counter(ctx);
  const Array<int32_t> index(ctx, kBatch);
  draw_live(ctx, data, {random_stream(seed, "encoder/pairs"), counter.view()}, index.view());
  return download(ctx, index.view());
}

class EncoderMetric : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, EncoderMetric,
                         testing::Values("learned_pd", "learned_spd", "learned_spd_normalised", "learned",
                                         "learned_sphere"),
                         [](const auto& test) { return test.param; });

TEST_P(EncoderMetric, LossAndGradientAreThoseOfItsFormula) {
  constexpr uint64_t kSeed = 5;
  const std::string metric = GetParam();
  Context ctx({.threads = 2});
  const DataTables data(ctx, small_mixture(), 0.9);
  Encoder encoder(ctx, data, {.metric = metric, .batch = kBatch}, kSeed);
  ParamStore& params = encoder.optimiser().params();

  // What the step will see: its draws through the network as it begins.
  const std::vector<float> before = download(ctx, params.values());
  const ParamEntry& entry = params.entries().back();
  ASSERT_EQ(entry.name, "w0");
  const auto* begin = before.data() + entry.offset;
  const std::vector<double> w(begin, begin + kWidth * kWidth);
  const Network net(before, {data.state_dim(), Encoder::kWidth, Encoder::kWidth, kWidth});
  Rows v1, v2;
  for (int32_t i : first_draw(ctx, data, kSeed)) {
    v1.push_back(net(data.states().row(i)));
    v2.push_back(net(data.states().row(data.next()[i])));
  }

  encoder.step(ctx);
  expect_within(encoder.optimiser().report(ctx).loss, reference_loss(metric, v1, v2, w), 1e-5);
  const Mat<float> gradient = params.find("w0").gradient();
  expect_gradient(std::vector<float>(gradient.data, gradient.data + gradient.size()),
                  [&](const std::vector<double>& moved) { return reference_loss(metric, v1, v2, moved); }, w, 1e-3);
}

// The cost is made of g: on the sphere for every metric but `learned`.
TEST_P(EncoderMetric, EmbedsOnTheSphere) {
  Context ctx({.threads = 2});
  const DataTables data(ctx, small_mixture(), 0.9);
  Encoder encoder(ctx, data, {.metric = GetParam(), .batch = kBatch}, 5);
  encoder.step(ctx);
  const Network net(download(ctx, encoder.optimiser().params().values()),
                    {data.state_dim(), Encoder::kWidth, Encoder::kWidth, kWidth});
  std::vector<float> g(static_cast<size_t>(7 * kWidth));
  encoder.embed(ctx, data.states().slice_rows(0, 7), {g.data(), 7, kWidth});
  Rows v;
  for (int64_t i = 0; i < 7; ++i) v.push_back(net(data.states().row(i)));
  if (std::string(GetParam()) != "learned") v = normalised(v);
  std::vector<double> want;
  for (const auto& row : v) want.insert(want.end(), row.begin(), row.end());
  expect_within(g, want, 1e-5);
}

}  // namespace
}  // namespace pwdice::test
