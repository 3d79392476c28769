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

Potentials::Columns Potentials::columns(Context& ctx, Mat<const float> heads) const {
  const int64_t n = data_.transitions();
  const Columns c{columns_.view().slice(0, n), columns_.view().slice(n, n), columns_.view().slice(2 * n, n)};
  copy_block(ctx, {head_column(heads, 0, n), as_column(c.v)});
  gather_rows(ctx, {head_column(heads, 0, heads.rows), data_.next(), as_column(c.v_next)});
  if (options_.method == DualMethod::Smodice) {
    affine(ctx, {tables_.reward.slice(0, n), -1, 0, c.u});
  } else {
    copy_block(ctx, {head_column(heads, 1, n), as_column(c.u)});
  }
  return c;
}

// y_i = (l0(s_i) - discount_i l0(s'_i) - l1(s_i)) / e2 for every transition.
void Potentials::residual(Context& ctx, Mat<const float> heads, Vec<float> y) const {
  const Columns c = columns(ctx, heads);
  bellman_residual(ctx, {c.v, c.v_next, c.u, data_.discount(), options_.eps2, y});
}

void Potentials::weights(Context& ctx, Vec<float> w) const {
  residual(ctx, predict_all(ctx), w);
  // SMODICE's chi2 weights are those of the true conjugate, whichever form its loss was written in.
  const bool exact = options_.method == DualMethod::Smodice && options_.divergence == Divergence::Chi2;
  policy_weights(ctx, {w, exact ? Divergence::Chi2Exact : options_.divergence, w});
}

// body(a, cost, n of the part) for one part of the transitions after the other: the features of a part are a few
// megabytes, whatever the size of the data set.
template <class Body>
void Potentials::over_pairs(Context& ctx, Mat<const float> heads, int64_t part_rows, const Body& body) const {
  const int64_t n = data_.transitions();
  const Array<float> a(ctx, std::min(n, part_rows));
  for (int64_t begin = 0; begin < n; begin += part_rows) {
    const int64_t count = std::min(part_rows, n - begin);
    const Vec<float> part = a.view().slice(0, count);
    copy_block(ctx, {head_column(heads, 1, n).slice_rows(begin, count), as_column(part)});
    body(part,
         PairCost{options_.distance, options_.beta, tables_.features.slice_rows(begin, count), tables_.expert,
                  tables_.reward.slice(begin, count)},
         count);
  }
}

// log 1/n sum_i exp((a_i - c_ij)/e1) for every expert state j over all n transitions.
std::vector<double> Potentials::column_lse_of_data(Context& ctx, Mat<const float> heads, int64_t part_rows) const {
  const auto n = static_cast<double>(data_.transitions());
  const int64_t m = tables_.expert.rows;
  const Array<float> part_lse(ctx, m);
  std::vector<double> top(static_cast<size_t>(m), -INFINITY), total(static_cast<size_t>(m), 0);
  over_pairs(ctx, heads, part_rows, [&](Vec<const float> a, const PairCost& cost, int64_t count) {
    column_lse(ctx, {cost, a, options_.eps1, part_lse.view()});
    const std::vector<float> lse = download(ctx, part_lse.view());
    for (size_t j = 0; j < lse.size(); ++j) {
      const double value = lse[j] + std::log(static_cast<double>(count) / n);
      const double high = std::max(top[j], value);
      if (high == -INFINITY) continue;
      total[j] = total[j] * std::exp(top[j] - high) + std::exp(value - high);
      top[j] = high;
    }
  });
  for (size_t j = 0; j < total.size(); ++j) total[j] = top[j] + std::log(total[j]);
  return total;
}

// e1 mean f*(y) over all pairs. A mean: the parts count by their size.
double Potentials::transport_chi2_of_data(Context& ctx, Mat<const float> heads, Vec<const float> b,
                                          int64_t part_rows) const {
  const int64_t n = data_.transitions();
  const Array<float> loss(ctx, 1), d_a(ctx, std::min(n, part_rows)), d_b(ctx, b.size);
  double sum = 0;
  over_pairs(ctx, heads, part_rows, [&](Vec<const float> a, const PairCost& cost, int64_t count) {
    transport_chi2(ctx, {cost, a, b, data_.expert_weight(), options_.eps1, options_.divergence, loss.view(),
                         d_a.view().slice(0, count), d_b.view()});
    sum += static_cast<double>(count) * read(ctx, loss);
  });
  return sum / static_cast<double>(n);
}

double Potentials::transport_objective(Context& ctx, Mat<const float> heads, int64_t part_rows) const {
  const std::vector<float> q = download(ctx, data_.expert_weight());
  if (!has_expert_head()) {
    const std::vector<double> lse = column_lse_of_data(ctx, heads, part_rows);
    double sum = 0;
    for (size_t j = 0; j < lse.size(); ++j) sum += q[j] > 0 ? q[j] * lse[j] : 0;
    return options_.eps1 * sum;
  }
  const int64_t m = tables_.expert.rows;
  const Array<float> expert_heads(ctx, m * net_.out()), l2(ctx, m);
  predict(ctx, data_.expert_states(), expert_heads.matrix(m, net_.out()));
  copy_block(ctx, {head_column(expert_heads.matrix(m, net_.out()), 2, m), as_column(l2.view())});
  const std::vector<float> b = download(ctx, l2.view());
  double linear = 0;
  for (size_t j = 0; j < b.size(); ++j) linear += static_cast<double>(q[j]) * b[j];
  if (options_.divergence != Divergence::Kl) return transport_chi2_of_data(ctx, heads, l2.view(), part_rows) - linear;

  const std::vector<double> lse = column_lse_of_data(ctx, heads, part_rows);
  double top = -INFINITY, total = 0;
  for (size_t j = 0; j < b.size(); ++j) {
    if (q[j] <= 0) continue;
    const double value = std::log(q[j]) + b[j] / options_.eps1 + lse[j], high = std::max(top, value);
    total = total * std::exp(top - high) + std::exp(value - high);
    top = high;
  }
  return options_.eps1 * (top + std::log(total)) - linear;
}

// The Bellman term without its linear part.
double Potentials::bellman_objective(Context& ctx, Mat<const float> heads, int64_t part_rows) const {
  const int64_t n = data_.transitions(), rows = std::min(n, part_rows);
  const Array<float> loss(ctx, 1);
  if (options_.divergence == Divergence::Kl) {
    const Array<float> y(ctx, n);
    residual(ctx, heads, y.view());
    reduce_logsumexp(ctx, {y.view(), loss.view()});
    return options_.eps2 * (read(ctx, loss) - std::log(static_cast<double>(n)));
  }
  const Columns c = columns(ctx, heads);
  const Array<float> d_v(ctx, rows), d_v_next(ctx, rows), d_u(ctx, rows), no_start(ctx, 1), d_start(ctx, 1);
  fill(ctx, no_start.view(), 0);
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += part_rows) {
    const int64_t count = std::min(part_rows, n - begin);
    bellman(ctx, {c.v.slice(begin, count), c.v_next.slice(begin, count), c.u.slice(begin, count),
                  data_.discount().slice(begin, count), no_start.view(), 0, options_.eps2, options_.divergence, loss.view(),
                  d_v.view().slice(0, count), d_v_next.view().slice(0, count), d_u.view().slice(0, count),
                  d_start.view()});
    sum += static_cast<double>(count) * read(ctx, loss);
  }
  return sum / static_cast<double>(n);
}

double Potentials::objective(Context& ctx, int64_t part_rows) const {
  PWDICE_CHECK(part_rows > 0, "potentials: {} transitions a part, expected at least 1", part_rows);
  const Mat<float> table = predict_all(ctx);
  const double bellman = bellman_objective(ctx, table, part_rows);
  const Mat<const float> starts = data_.initial_states();
  const Array<float> start_heads(ctx, starts.rows * net_.out()), init(ctx, starts.rows), scalar(ctx, 1);
  predict(ctx, starts, start_heads.matrix(starts.rows, net_.out()));
  copy_block(ctx, {head_column(start_heads.matrix(starts.rows, net_.out()), 0, starts.rows), as_column(init.view())});
  reduce_mean(ctx, {init.view(), scalar.view()});
  const double linear = -(1.0 - options_.gamma) * read(ctx, scalar);
  return bellman + linear + (options_.method == DualMethod::Smodice ? 0 : transport_objective(ctx, table, part_rows));
}

}  // namespace pwdice
