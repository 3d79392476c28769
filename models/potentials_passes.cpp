// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Whole passes of the potentials over the data set: the weights of behaviour cloning and the exact objective.
#include <algorithm>
#include <cmath>

#include "../kernels/block.h"
#include "../kernels/elementwise.h"
#include "../kernels/reduce.h"
#include "potentials.h"

namespace pwdice {
namespace {

Mat<const float> head_column(Mat<const float> heads, int64_t k, int64_t rows) {
  return {heads.data + k, rows, 1, heads.stride};
}

Mat<float> as_column(Vec<float> v) { return {v.data, v.size, 1}; }

float read(Context& ctx, const Array<float>& scalar) {
  float value;
  download(ctx, &value, scalar.view().data, sizeof value);
  return value;
}

}  // namespace

void Potentials::predict(Context& ctx, Mat<const float> states, Mat<float> heads) const {
  net_.predict(ctx, states, heads, params_.has_average() ? Weights::Average : Weights::Current);
}

Mat<float> Potentials::predict_all(Context& ctx) const {
  const Mat<float> heads = heads_.matrix(data_.states().rows, net_.out());
  predict(ctx, data_.states(), heads);
  return heads;
}

// y_i = (l0(s_i) - discount_i l0(s'_i) - l1(s_i)) / e2 for every transition.
void Potentials::residual(Context& ctx, Mat<const float> heads, Vec<float> y) const {
  const int64_t n = data_.transitions();
  const Vec<float> v = columns_.view().slice(0, n), v_next = columns_.view().slice(n, n), u = columns_.view().slice(2 * n, n);
  copy_block(ctx, {head_column(heads, 0, n), as_column(v)});
  gather_rows(ctx, {head_column(heads, 0, heads.rows), data_.next(), as_column(v_next)});
  if (options_.method == DualMethod::Smodice) {
    affine(ctx, {tables_.reward.slice(0, n), -1, 0, u});
  } else {
    copy_block(ctx, {head_column(heads, 1, n), as_column(u)});
  }
  bellman_residual(ctx, {v, v_next, u, data_.discount(), options_.eps2, y});
}

void Potentials::weights(Context& ctx, Vec<float> w) const {
  residual(ctx, predict_all(ctx), w);
  // SMODICE's chi2 weights are those of the true conjugate, whichever form its loss was written in.
  const bool exact = options_.method == DualMethod::Smodice && options_.divergence == Divergence::Chi2;
  policy_weights(ctx, {w, exact ? Divergence::Chi2Exact : options_.divergence, w});
}

// log 1/n sum_i exp((a_i - c_ij)/e1) for every expert state j over all n transitions, a part at a time: the
// features of a part are a few megabytes, whatever the size of the data set.
std::vector<double> Potentials::column_lse_of_data(Context& ctx, Mat<const float> heads) const {
  constexpr int64_t kPart = 65536;
  const int64_t n = data_.transitions(), m = tables_.expert.rows;
  const Array<float> a(ctx, std::min(n, kPart)), part_lse(ctx, m);
  std::vector<double> top(static_cast<size_t>(m), -INFINITY), total(static_cast<size_t>(m), 0);
  for (int64_t begin = 0; begin < n; begin += kPart) {
    const int64_t count = std::min(kPart, n - begin);
    const Vec<float> part = a.view().slice(0, count);
    copy_block(ctx, {head_column(heads, 1, n).slice_rows(begin, count), as_column(part)});
    const PairCost cost{options_.distance, options_.beta, tables_.features.slice_rows(begin, count), tables_.expert,
                        tables_.reward.slice(begin, count)};
    column_lse(ctx, {cost, part, options_.eps1, part_lse.view()});
    const std::vector<float> lse = download(ctx, part_lse.view());
    for (size_t j = 0; j < lse.size(); ++j) {
      const double value = lse[j] + std::log(static_cast<double>(count) / static_cast<double>(n));
      const double high = std::max(top[j], value);
      if (high == -INFINITY) continue;
      total[j] = total[j] * std::exp(top[j] - high) + std::exp(value - high);
      top[j] = high;
    }
  }
  for (size_t j = 0; j < total.size(); ++j) total[j] = top[j] + std::log(total[j]);
  return total;
}

double Potentials::transport_objective(Context& ctx, Mat<const float> heads) const {
  const std::vector<double> lse = column_lse_of_data(ctx, heads);
  const std::vector<float> q = download(ctx, data_.expert_weight());
  if (!has_expert_head()) {
    double sum = 0;
    for (size_t j = 0; j < lse.size(); ++j) sum += q[j] > 0 ? q[j] * lse[j] : 0;
    return options_.eps1 * sum;
  }
  const int64_t m = tables_.expert.rows;
  const Array<float> expert_heads(ctx, m * net_.out());
  predict(ctx, data_.expert_states(), expert_heads.matrix(m, net_.out()));
  const std::vector<float> l = download(ctx, expert_heads.view());
  double top = -INFINITY, total = 0, linear = 0;
  for (int64_t j = 0; j < m; ++j) {
    if (q[j] <= 0) continue;
    const double b = l[j * net_.out() + 2], value = std::log(q[j]) + b / options_.eps1 + lse[j];
    const double high = std::max(top, value);
    total = total * std::exp(top - high) + std::exp(value - high);
    top = high;
    linear += q[j] * b;
  }
  return options_.eps1 * (top + std::log(total)) - linear;
}

double Potentials::objective(Context& ctx) const {
  PWDICE_CHECK(options_.divergence == Divergence::Kl, "potentials: the exact objective is computed for KL alone");
  const int64_t n = data_.transitions();
  const Array<float> y(ctx, n), scalar(ctx, 1);
  const Mat<float> table = predict_all(ctx);
  residual(ctx, table, y.view());
  reduce_logsumexp(ctx, {y.view(), scalar.view()});
  const double bellman = options_.eps2 * (read(ctx, scalar) - std::log(static_cast<double>(n)));
  const Mat<const float> starts = data_.initial_states();
  const Array<float> start_heads(ctx, starts.rows * net_.out()), init(ctx, starts.rows);
  predict(ctx, starts, start_heads.matrix(starts.rows, net_.out()));
  copy_block(ctx, {head_column(start_heads.matrix(starts.rows, net_.out()), 0, starts.rows), as_column(init.view())});
  reduce_mean(ctx, {init.view(), scalar.view()});
  const double linear = -(1.0 - options_.gamma) * read(ctx, scalar);
  return bellman + linear + (options_.method == DualMethod::Smodice ? 0 : transport_objective(ctx, table));
}

}  // namespace pwdice
