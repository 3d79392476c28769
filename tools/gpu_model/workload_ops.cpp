// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../../kernels/adam.h"
#include "../../kernels/bce.h"
#include "../../kernels/bellman.h"
#include "../../kernels/block.h"
#include "../../kernels/cloning_weights.h"
#include "../../kernels/elementwise.h"
#include "../../kernels/gather.h"
#include "../../kernels/gradient_penalty.h"
#include "../../kernels/infonce.h"
#include "../../kernels/linear.h"
#include "../../kernels/matmul.h"
#include "../../kernels/policy_nll.h"
#include "../../kernels/reduce.h"
#include "../../kernels/row_norm.h"
#include "../../kernels/sample.h"
#include "../../kernels/scan.h"
#include "../../kernels/transport.h"
#include "workload.h"

namespace pwdice::tools {
namespace {

// Hopper, the batches of the paper.
constexpr int64_t kBatch = 1024, kState = 11, kAction = 3, kWidth = 256, kFeatures = 32, kParams = 1 << 20;

}  // namespace

void count_infonce(Workload& work, int64_t n, int64_t d) {
  Context& ctx = work.ctx;
  const Vec<float> lse = work.vec(n), loss = work.vec(1);
  const Mat<float> d_v1 = work.mat(n, d), d_v2 = work.mat(n, d), d_w0 = work.mat(d, d);
  for (const auto metric :
       {ScoreMetric::SoftplusGram, ScoreMetric::Gram, ScoreMetric::Plain, ScoreMetric::Identity}) {
    const InfoNce in{work.mat(n, d), work.mat(n, d), work.mat(d, d), metric, true, 1.f};
    infonce_forward(ctx, {in, lse, loss});
    infonce_backward(ctx, {in, lse, work.vec(1), d_v1, d_v2, d_w0});
    if (d != kFeatures) return;  // the metrics do not depend on the width
  }
}

void count_layers(Workload& work) {
  Context& ctx = work.ctx;
  struct Layer {
    int64_t in, out;
  };
  for (const auto [in, out] :
       {Layer{kState, kWidth}, Layer{kWidth, kWidth}, Layer{kWidth, 1}, Layer{kWidth, 2 * kAction}}) {
    const Mat<float> x = work.mat(kBatch, in), w = work.mat(out, in), y = work.mat(kBatch, out);
    linear_forward(ctx, {x, w, work.vec(out), Activation::Relu, y});
    linear_backward_input(ctx, {y, w, x, Activation::Relu, work.mat(kBatch, in)});
    linear_backward_params(ctx, {y, x, work.mat(out, in), work.vec(out)});
  }
  const Mat<float> a = work.mat(kWidth, kBatch), b = work.mat(kBatch, kWidth);
  matmul(ctx, {a, b, false, false, work.mat(kWidth, kWidth)});
  matmul(ctx, {a, b, true, true, work.mat(kBatch, kBatch)});
  matmul(ctx, {work.mat(kBatch, 0), work.mat(0, kWidth), false, false, work.mat(kBatch, kWidth)});
}

// Episodes of 64 steps.
void count_cloning(Workload& work) {
  constexpr int32_t kLength = 64, kEpisodes = 64, kTransitions = kLength * kEpisodes;
  std::vector<int32_t> end, order, begin{0};
  for (int32_t i = 0; i < kTransitions; ++i) {
    end.push_back((i / kLength + 1) * kLength);
    order.push_back(i % kEpisodes * kLength + i / kEpisodes);
  }
  for (int32_t t = 1; t <= kLength; ++t) begin.push_back(t * kEpisodes);
  for (const bool balanced : {false, true}) {
    cloning_weights(work.ctx, {40, 3.f, balanced, 0.97f, work.from(end), work.from(order), work.from(begin),
                               work.vec(kTransitions)});
  }
}

void count_transport(Workload& work, int64_t n, int64_t m) {
  Context& ctx = work.ctx;
  const Vec<float> a = work.vec(n), b = work.vec(m), q = work.vec(m), loss = work.vec(1);
  const Vec<float> d_a = work.vec(n), d_b = work.vec(m), col_lse = work.vec(m);
  for (const auto distance : {Distance::SquaredEuclidean, Distance::Euclidean, Distance::Manhattan,
                              Distance::ExpManhattan, Distance::Cosine, Distance::Indicator}) {
    const PairCost cost{distance, 0.1f, work.mat(n, kFeatures), work.mat(m, kFeatures), work.vec(n)};
    transport_joint(ctx, {cost, a, b, q, 0.5f, loss, d_a, d_b});
    transport_semidual(ctx, {cost, a, q, 0.5f, loss, d_a, col_lse});
    column_lse(ctx, {cost, a, 0.5f, col_lse});
    for (const auto divergence : {Divergence::Chi2, Divergence::Chi2Exact})
      transport_chi2(ctx, {cost, a, b, q, 0.5f, divergence, loss, d_a, d_b});
  }
}

void count_pairs(Workload& work, int64_t n) {
  Context& ctx = work.ctx;
  const Vec<float> a = work.vec(n), loss = work.vec(1), d_a = work.vec(n), d_b = work.vec(n);
  const PairCost cost{Distance::SquaredEuclidean, 0.1f, work.mat(n, kFeatures), work.mat(n, kFeatures),
                      work.vec(n)};
  for (const auto divergence : {Divergence::Kl, Divergence::Chi2, Divergence::Chi2Exact})
    transport_paired(ctx, {cost, a, a, 0.5f, divergence, loss, d_a, d_b});
  cost_paired(ctx, {cost, work.vec(n)});
  if (n <= kBatch) cost_matrix(ctx, {cost, work.mat(n, n)});
}

void count_losses(Workload& work, int64_t rows, int64_t width) {
  Context& ctx = work.ctx;
  const Vec<float> loss = work.vec(1), one = work.vec(1), row = work.vec(rows);
  bce_forward(ctx, {row, rows / 2, loss});
  bce_backward(ctx, {row, rows / 2, one, work.vec(rows)});
  for (const auto divergence : {Divergence::Kl, Divergence::Chi2, Divergence::Chi2Exact}) {
    bellman(ctx, {row, row, row, row, row, 0.01f, 0.5f, divergence, loss, work.vec(rows), work.vec(rows),
                  work.vec(rows), work.vec(rows)});
    policy_weights(ctx, {row, divergence, work.vec(rows)});
  }
  bellman_residual(ctx, {row, row, row, row, 0.5f, work.vec(rows)});
  const Mat<float> head = work.mat(rows, 2 * kAction), action = work.mat(rows, kAction);
  policy_nll_forward(ctx, {head, action, row, work.vec(rows), loss});
  policy_nll_backward(ctx, {head, action, row, one, work.mat(rows, 2 * kAction)});
  const Mat<float> x = work.mat(rows, kState), w1 = work.mat(width, kState), w2 = work.mat(width, width);
  const Vec<float> b = work.vec(width), w3 = work.vec(width), norm = work.vec(rows);
  gradient_penalty(ctx, {x, w1, w2, b, b, w3, Activation::Tanh, 10.f, norm, loss, work.mat(width, kState),
                         work.mat(width, width), work.vec(width), work.vec(width), work.vec(width)});
  const Mat<float> v = work.mat(rows, kFeatures);
  row_norm_forward(ctx, {v, work.mat(rows, kFeatures), norm});
  row_norm_backward(ctx, {v, v, norm, work.mat(rows, kFeatures)});
}

void count_elementwise(Workload& work) {
  Context& ctx = work.ctx;
  const Vec<float> x = work.vec(kParams), y = work.vec(kParams), one = work.vec(1), row = work.vec(kBatch);
  const Mat<float> m = work.mat(kBatch, kWidth), to = work.mat(kBatch, kWidth);
  unary_map(ctx, {Unary::Exp, x, y});
  binary_map(ctx, {Binary::Multiply, x, y, y});
  affine(ctx, {x, 2.f, 1.f, y});
  accumulate(ctx, {x, 2.f, y});
  scale_by(ctx, {x, one, y});
  mix_rows(ctx, {m, m, row, to});
  scale_rows(ctx, {m, row, to});
  broadcast_columns(ctx, {work.vec(kWidth), to});
  fill(ctx, y, 1.f);
  copy_block(ctx, {m, to});
  add_block(ctx, {m, to});
  activation_backward(ctx, {m, m, Activation::Tanh, to});
  const Vec<int64_t> t = work.from(std::vector<int64_t>{1});
  adam(ctx, {0.9f, 0.999f, 1e-8f, 0.f, one, one, one, t, x, y, work.vec(kParams), work.vec(kParams)});
  clip_scale(ctx, {x, 1.f, work.vec(1), work.vec(1)});
  clip_scale(ctx, {row, 1.f, work.vec(1), work.vec(1)});
  ema(ctx, {0.99f, one, x, y});
  std::vector<int32_t> index(static_cast<size_t>(kBatch));
  for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int32_t>(i * 389 % 1024);
  const Vec<int32_t> drawn = work.from(index);
  gather_rows(ctx, {m, drawn, to});
  gather_values(ctx, {row, drawn, work.vec(kBatch)});
  scatter_values(ctx, {work.vec(kBatch), drawn, work.vec(1024)});
  gather_indices(ctx, {drawn, drawn, work.from(index)});
}

void count_reductions(Workload& work) {
  Context& ctx = work.ctx;
  const Vec<float> result = work.vec(1);
  for (const int64_t n : {kBatch, kParams}) {
    const Vec<float> x = work.vec(n);
    for (const auto reduce : {reduce_sum, reduce_mean, reduce_max, reduce_logsumexp, reduce_norm})
      reduce(ctx, {x, result});
    dot(ctx, {x, x, result});
    all_finite(ctx, {x, result});
  }
  const Mat<float> m = work.mat(4 * kBatch, kWidth);
  row_sum(ctx, {m, work.vec(4 * kBatch)});
  column_sum(ctx, {m, work.vec(kWidth)});
  column_moments(ctx, {m, true, work.vec(kWidth), work.vec(kWidth)});
}

void count_tables(Workload& work) {
  Context& ctx = work.ctx;
  const RandomStream stream{1, 2};
  const Vec<uint64_t> step = work.from(std::vector<uint64_t>{0});
  const Vec<int32_t> index = work.from(std::vector<int32_t>(static_cast<size_t>(kBatch)));
  const Vec<double> cumulative = work.from(std::vector<double>(static_cast<size_t>(4 * kScanChunk)));
  const Vec<float> weights = work.vec(4 * kScanChunk);
  cumulative_sum(ctx, {weights, cumulative});
  sample_uniform(ctx, {stream, step, kParams, index});
  sample_shuffled(ctx, {stream, step, kParams, index});
  sample_weighted(ctx, {stream, step, cumulative, index});
  sample_real(ctx, {stream, step, work.vec(kBatch)});
  advance_counter(ctx, step);
  const std::vector<float> p{0.25f, 0.5f};
  quantiles(ctx, {work.vec(4 * kBatch), {p.data(), 2}, work.vec(2)});
  count_cloning(work);
}

}  // namespace pwdice::tools
