// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "potentials.h"

#include <cmath>

#include "../kernels/block.h"
#include "../kernels/elementwise.h"

namespace pwdice {
namespace {

int64_t head_count(DualMethod method) {
  switch (method) {
    case DualMethod::Smodice: return 1;
    case DualMethod::Semidual: return 2;
    case DualMethod::Joint:
    case DualMethod::Paired: return 3;
  }
  return 0;
}

PotentialsOptions completed(PotentialsOptions options, const DataTables& data) {
  if (options.method == DualMethod::Paired) {
    options.shared = false;
    options.expert_batch = options.batch;  // row k of one meets row k of the other
  }
  if (options.method == DualMethod::Smodice) options.eps2 = 1;
  if (options.method == DualMethod::Semidual) {
    PWDICE_CHECK(options.divergence == Divergence::Kl, "potentials: the semidual form exists for KL alone");
    options.expert_batch = 0;
  }
  PWDICE_CHECK(data.transitions() > 0 && data.initial_states().rows > 0 && data.expert_states().rows > 0,
               "potentials: {} transitions, {} initial states and {} expert states, expected at least one of each",
               data.transitions(), data.initial_states().rows, data.expert_states().rows);
  return options;
}

}  // namespace

Potentials::Potentials(Context& ctx, const DataTables& data, const CostTables& tables,
                       const PotentialsOptions& options, uint64_t seed)
    : data_(data),
      tables_(tables),
      options_(completed(options, data)),
      net_(params_, "net", {data.state_dim(), kWidth, kWidth, head_count(options.method)}, Activation::Relu),
      transitions_(random_stream(seed, "potentials/transitions")),
      pairs_(random_stream(seed, "potentials/pairs")),
      expert_(random_stream(seed, "potentials/expert")),
      expert_linear_(random_stream(seed, "potentials/expert_linear")),
      initial_(random_stream(seed, "potentials/initial")),
      counter_(ctx),
      optimiser_((params_.allocate(ctx, options.adam.ema_decay.has_value()), params_.initialise(ctx, seed), ctx),
                 params_, options.adam),
      tape_(ctx) {
  const int64_t n = options_.batch, m = expert_rows(), f = tables.features.cols;
  begin_next_ = n;
  begin_init_ = 2 * n;
  const Mat<const float> initial = data.initial_states(), expert = data.expert_states();
  const int64_t drawn = !has_expert_head() ? 0 : draws_twice() ? 2 * m : m;
  every_initial_ = initial.rows <= options_.init_batch;
  every_expert_ = has_expert_head() && expert.rows <= drawn;
  begin_pair_ = begin_init_ + (every_initial_ ? initial.rows : options_.init_batch);
  begin_expert_ = begin_pair_ + (options_.shared || options_.method == DualMethod::Smodice ? 0 : n);
  begin_linear_ = begin_expert_ + m;
  rows_ = begin_expert_ + (every_expert_ ? expert.rows : drawn);

  x_ = Array<float>(ctx, rows_ * data.state_dim());
  const Mat<float> x = x_.matrix(rows_, data.state_dim());
  if (every_initial_) copy_block(ctx, {initial, x.slice_rows(begin_init_, initial.rows)});
  if (every_expert_) copy_block(ctx, {expert, x.slice_rows(begin_expert_, expert.rows)});
  index_ = Array<int32_t>(ctx, n);
  next_ = Array<int32_t>(ctx, n);
  init_index_ = Array<int32_t>(ctx, options_.init_batch);
  expert_index_ = Array<int32_t>(ctx, m);
  linear_index_ = Array<int32_t>(ctx, draws_twice() ? m : 0);
  discount_ = Array<float>(ctx, n);
  reward_ = Array<float>(ctx, n);
  features_ = Array<float>(ctx, n * f);
  heads_ = Array<float>(ctx, data.states().rows * net_.out());
  columns_ = Array<float>(ctx, 3 * data.transitions());
  if (draws_experts()) {
    expert_features_ = Array<float>(ctx, m * f);
    q_ = Array<float>(ctx, m);
    fill(ctx, q_.view(), 1.f / static_cast<float>(m));
  }
}

int64_t Potentials::expert_rows() const {
  return draws_experts() ? options_.expert_batch : data_.expert_states().rows;
}

void Potentials::draw(Context& ctx) {
  const int64_t n = options_.batch;
  const Mat<float> x = x_.matrix(rows_, data_.state_dim());
  const Vec<int32_t> index = index_.view(), init = init_index_.view();
  const Vec<int32_t> expert = expert_index_.view(), linear = linear_index_.view();

  draw_transitions(ctx, data_, {transitions_, counter_.view()}, index);
  next_rows(ctx, data_, index, next_.view());
  gather_rows(ctx, {data_.states(), index, x.slice_rows(0, n)});
  gather_rows(ctx, {data_.states(), next_.view(), x.slice_rows(begin_next_, n)});
  gather_values(ctx, {data_.discount(), index, discount_.view()});
  draw_initial(ctx, data_, {initial_, counter_.view()}, init);
  if (!every_initial_) gather_rows(ctx, {data_.initial_states(), init, x.slice_rows(begin_init_, init.size)});
  if (begin_expert_ > begin_pair_) {
    draw_transitions(ctx, data_, {pairs_, counter_.view()}, index);
    gather_rows(ctx, {data_.states(), index, x.slice_rows(begin_pair_, n)});
  }
  gather_values(ctx, {tables_.reward, index, reward_.view()});
  if (options_.method == DualMethod::Smodice) return;
  gather_rows(ctx, {tables_.features, index, features_.matrix(n, tables_.features.cols)});

  if (!draws_experts()) return;
  draw_expert(ctx, data_, {expert_, counter_.view()}, expert);
  gather_rows(ctx, {tables_.expert, expert, expert_features_.matrix(expert.size, tables_.expert.cols)});
  if (draws_twice()) draw_expert(ctx, data_, {expert_linear_, counter_.view()}, linear);
  if (every_expert_) return;
  gather_rows(ctx, {data_.expert_states(), expert, x.slice_rows(begin_expert_, expert.size)});
  if (draws_twice()) gather_rows(ctx, {data_.expert_states(), linear, x.slice_rows(begin_linear_, linear.size)});
}

Tensor Potentials::initial_head(const Tensor& head) {
  const Tensor l0 = column(tape_, head, 0, begin_init_, begin_pair_ - begin_init_);
  return every_initial_ ? gather(tape_, l0, init_index_.view()) : l0;
}

// `begin`: where the drawn states stand, unless all do.
Tensor Potentials::expert_head(const Tensor& head, Vec<const int32_t> index, int64_t begin) {
  if (!every_expert_) return column(tape_, head, 2, begin, expert_rows());
  const Tensor l2 = column(tape_, head, 2, begin_expert_, data_.expert_states().rows);
  return draws_experts() ? gather(tape_, l2, index) : l2;
}

Tensor Potentials::transport(const Tensor& head) {
  const int64_t n = options_.batch, m = expert_rows();
  const Mat<const float> expert = draws_experts() ? Mat<const float>(expert_features_.matrix(m, tables_.expert.cols)) : tables_.expert;
  const Vec<const float> q = draws_experts() ? Vec<const float>(q_.view()) : data_.expert_weight();
  const PairCost cost{options_.distance, options_.beta, features_.matrix(n, tables_.features.cols), expert, reward_.view()};
  const Tensor a = column(tape_, head, 1, options_.shared ? 0 : begin_pair_, n);
  if (options_.method == DualMethod::Semidual) return transport_semidual(tape_, cost, a, q, options_.eps1);

  const Tensor b = expert_head(head, expert_index_.view(), begin_expert_);
  const Tensor term = options_.method == DualMethod::Paired
                          ? transport_paired(tape_, cost, a, b, options_.eps1, options_.divergence)
                      : options_.divergence == Divergence::Kl
                          ? transport_joint(tape_, cost, a, b, q, options_.eps1)
                          : transport_chi2(tape_, cost, a, b, q, options_.eps1, options_.divergence);
  // - E_E l2, over a second draw where the method draws at all and does not share.
  const Tensor linear = draws_twice() ? expert_head(head, linear_index_.view(), begin_linear_) : b;
  return sub(tape_, term, sum(tape_, mul(tape_, linear, tape_.constant(q))));
}

Tensor Potentials::loss(Context& ctx) {
  const int64_t n = options_.batch;
  const Tensor head = mlp(tape_, tape_.constant(x_.matrix(rows_, data_.state_dim())), net_);
  const bool smodice = options_.method == DualMethod::Smodice;
  if (smodice) affine(ctx, {reward_.view(), -1, 0, reward_.view()});  // u = -R
  const Tensor u = smodice ? tape_.constant(Vec<const float>(reward_.view())) : column(tape_, head, 1, 0, n);
  Tensor loss = bellman(tape_, column(tape_, head, 0, 0, n), column(tape_, head, 0, begin_next_, n), u, discount_.view(),
                        initial_head(head), {1 - options_.gamma, options_.eps2, options_.divergence});
  if (!smodice) loss = add(tape_, loss, transport(head));
  if (options_.regulariser > 0) {
    for (int64_t k = 0; k < net_.out(); ++k) {
      const Tensor l = k == 2 ? expert_head(head, expert_index_.view(), begin_expert_) : column(tape_, head, k, 0, n);
      const Tensor level = square(tape_, mean(tape_, l));
      loss = add(tape_, loss, scale(tape_, level, options_.regulariser));
    }
  }
  return loss;
}

void Potentials::step(Context& ctx) {
  params_.check_context("step", ctx);
  captured_.run(ctx, [&] {
    draw(ctx);
    tape_.begin(params_);
    const Tensor total = loss(ctx);
    tape_.backward(total);
    optimiser_.step(ctx, total);
    counter_.advance(ctx);
  });
}

std::vector<StateSpan> Potentials::state() const {
  auto spans = optimiser_.state();
  spans.push_back({"potentials/counter", counter_.state().data, sizeof(uint64_t)});
  return spans;
}

}  // namespace pwdice
