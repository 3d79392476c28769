// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// The ops weigh rows by 1/n, so exact expectations are had by shifting the potentials, with d^I(s) on n kept
// states and W on N kept pairs:
//   transport   a_i = l1_i + eps1 log(n d^I_i), b = l2, q = d^E
//   bellman     v = l0(s), v_next = (T l0)(s,a) by a matrix product, u = l1(s) - eps2 log(N W(s,a)), v_init =
//   p0 . l0
// The indicator cost is the ops' own. A cost table enters column by column, as -reward with beta = 0: column
// j gives L_j = eps1 log sum_i d^I_i exp((l1_i + l2_j - c_ij)/eps1) and its softmax; the columns join by L =
// eps1 log sum_j q_j exp(L_j/eps1).
#include "float32_dual.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "../../kernels/bellman.h"
#include "../../kernels/matmul.h"
#include "../../kernels/transport.h"
#include "flow.h"
#include "metrics.h"
#include "newton.h"

namespace pwdice::tabular {
namespace {

using Floats = std::vector<float>;

size_t at(int index) { return static_cast<size_t>(index); }
Vec<float> vec(Floats& values) { return {values.data(), static_cast<int64_t>(values.size())}; }
Vec<const float> in(const Floats& values) { return {values.data(), static_cast<int64_t>(values.size())}; }
Mat<const float> rows(const Floats& values, size_t n, size_t d) {
  return {values.data(), static_cast<int64_t>(n), static_cast<int64_t>(d)};
}

// The dual on the kept states as a function of x = (l0, l1, l2) in float32.
class Float32Dual {
 public:
  Float32Dual(const Problem& problem, const RegOptions& options);

  size_t size() const { return 2 * n_ + columns_.size(); }
  void set_eps(double eps1, double eps2) {
    eps1_ = static_cast<float>(eps1), eps2_ = static_cast<float>(eps2);
  }
  float evaluate(const Floats& x, Floats& gradient);
  Floats gather(const DualPoint& point) const;
  DualPoint scatter(std::span<const float> x) const;
  Policy policy(const Floats& x);

 private:
  float transport(const Floats& x, Floats& gradient);
  float transport_by_columns(const Floats& a, const Floats& b, Floats& d_a, Floats& d_b);
  float bellman_term(const Floats& x, Floats& gradient);
  void bellman_inputs(const Floats& x);

  Context ctx_;
  const Problem& problem_;
  Flow flow_;
  std::vector<int> columns_;
  size_t n_, pairs_;
  float eps1_ = 1, eps2_ = 1;
  Floats ids_, column_ids_, zero_reward_, q_;
  Floats transition_;                       // (pairs, n)
  std::vector<double> log_row_, log_pair_;  // log(n d^I), log(N W)
  Floats v_, v_next_, u_, discount_, start_;
};

ContextOptions one_thread() {
  ContextOptions options;
  options.threads = 1;
  options.scratch_bytes = size_t{16} << 20;
  return options;
}

Float32Dual::Float32Dual(const Problem& problem, const RegOptions& options)
    : ctx_(one_thread()), problem_(problem), flow_(make_flow(problem, problem.agnostic_sa, {})) {
  PWDICE_CHECK(options.convention == UConvention::Paper,
               "float32 dual: the ops know the paper's references only");
  set_eps(options.eps1, options.eps2);
  n_ = flow_.states.size(), pairs_ = flow_.rows.size();
  for (size_t j = 0; j < problem.n_states(); ++j) {
    if (problem.expert_s[j] <= 0) continue;
    columns_.push_back(static_cast<int>(j));
    column_ids_.push_back(static_cast<float>(j));
    q_.push_back(static_cast<float>(problem.expert_s[j]));
  }
  for (const int s : flow_.states) {
    ids_.push_back(static_cast<float>(s));
    log_row_.push_back(std::log(static_cast<double>(n_) * problem.agnostic_s[at(s)]));
    start_.push_back(static_cast<float>(problem.p0[at(s)]));
  }
  zero_reward_.assign(n_, 0.0f);
  transition_.assign(pairs_ * n_, 0.0f);
  for (size_t k = 0; k < pairs_; ++k) {
    log_pair_.push_back(flow_.log_reference[k] + std::log(static_cast<double>(pairs_)));
    const auto dense = problem.model.dense_row(flow_.model_row[k]);
    for (size_t i = 0; i < n_; ++i) transition_[k * n_ + i] = static_cast<float>(dense[at(flow_.states[i])]);
  }
  discount_.assign(pairs_, static_cast<float>(problem.gamma));
}

Floats Float32Dual::gather(const DualPoint& point) const {
  Floats x;
  for (const int s : flow_.states) x.push_back(static_cast<float>(point.lambda_value[at(s)]));
  for (const int s : flow_.states) x.push_back(static_cast<float>(point.lambda_pi[at(s)]));
  for (const int j : columns_) x.push_back(static_cast<float>(point.lambda_expert[at(j)]));
  return x;
}

DualPoint Float32Dual::scatter(std::span<const float> x) const {
  const std::vector<double> zero(problem_.n_states());
  DualPoint point{zero, zero, zero};
  for (size_t i = 0; i < n_; ++i) {
    point.lambda_value[at(flow_.states[i])] = x[i];
    point.lambda_pi[at(flow_.states[i])] = x[n_ + i];
  }
  for (size_t j = 0; j < columns_.size(); ++j) point.lambda_expert[at(columns_[j])] = x[2 * n_ + j];
  return point;
}

float Float32Dual::evaluate(const Floats& x, Floats& gradient) {
  gradient.assign(size(), 0.0f);
  float loss = transport(x, gradient) + bellman_term(x, gradient);
  for (size_t j = 0; j < q_.size(); ++j) {
    loss -= q_[j] * x[2 * n_ + j];
    gradient[2 * n_ + j] -= q_[j];
  }
  return loss;
}

float Float32Dual::transport(const Floats& x, Floats& gradient) {
  Floats a(n_), b(x.begin() + static_cast<std::ptrdiff_t>(2 * n_), x.end()), d_a(n_), d_b(b.size()), loss(1);
  for (size_t i = 0; i < n_; ++i) a[i] = static_cast<float>(x[n_ + i] + eps1_ * log_row_[i]);
  if (problem_.cost.table.empty()) {
    const PairCost cost{Distance::Indicator, 1.0f, rows(ids_, n_, 1), rows(column_ids_, b.size(), 1),
                        in(zero_reward_)};
    transport_joint(ctx_, {cost, in(a), in(b), in(q_), eps1_, vec(loss), vec(d_a), vec(d_b)});
  } else {
    loss[0] = transport_by_columns(a, b, d_a, d_b);
  }
  for (size_t i = 0; i < n_; ++i) gradient[n_ + i] += d_a[i];
  for (size_t j = 0; j < d_b.size(); ++j) gradient[2 * n_ + j] += d_b[j];
  return loss[0];
}

float Float32Dual::transport_by_columns(const Floats& a, const Floats& b, Floats& d_a, Floats& d_b) {
  const Floats one{1.0f}, origin{0.0f};
  Floats reward(n_), loss(1), column_b(1), column_d_b(1);
  std::vector<Floats> softmax(b.size(), Floats(n_));
  std::vector<double> log_weight(b.size());
  for (size_t j = 0; j < b.size(); ++j) {
    for (size_t i = 0; i < n_; ++i)
      reward[i] = static_cast<float>(-problem_.cost(at(flow_.states[i]), at(columns_[j])));
    column_b[0] = b[j];
    const PairCost cost{Distance::Indicator, 0.0f, rows(ids_, n_, 1), rows(origin, 1, 1), in(reward)};
    transport_joint(ctx_,
                    {cost, in(a), in(column_b), in(one), eps1_, vec(loss), vec(softmax[j]), vec(column_d_b)});
    log_weight[j] = std::log(q_[j]) + loss[0] / eps1_;
  }
  const double lse = softmax_in_place(log_weight);
  for (size_t j = 0; j < b.size(); ++j) {
    d_b[j] = static_cast<float>(log_weight[j]);
    for (size_t i = 0; i < n_; ++i) d_a[i] += d_b[j] * softmax[j][i];
  }
  return static_cast<float>(eps1_ * lse);
}

void Float32Dual::bellman_inputs(const Floats& x) {
  v_.resize(pairs_), v_next_.resize(pairs_), u_.resize(pairs_);
  Mat<float> product(v_next_.data(), static_cast<int64_t>(pairs_), 1);
  matmul(ctx_, {rows(transition_, pairs_, n_), rows(x, n_, 1), false, false, product});
  for (size_t k = 0; k < pairs_; ++k) {
    const size_t s = at(flow_.state_of[k]);
    v_[k] = x[s];
    u_[k] = static_cast<float>(x[n_ + s] - eps2_ * log_pair_[k]);
  }
}

float Float32Dual::bellman_term(const Floats& x, Floats& gradient) {
  bellman_inputs(x);
  const Floats v_init{std::inner_product(start_.begin(), start_.end(), x.begin(), 0.0f)};
  Floats loss(1), d_v(pairs_), d_v_next(pairs_), d_u(pairs_), d_init(1), d_l0(n_);
  bellman(ctx_,
          {in(v_), in(v_next_), in(u_), in(discount_), in(v_init), static_cast<float>(1 - problem_.gamma),
           eps2_, Divergence::Kl, vec(loss), vec(d_v), vec(d_v_next), vec(d_u), vec(d_init)});
  Mat<float> product(d_l0.data(), static_cast<int64_t>(n_), 1);
  matmul(ctx_, {rows(transition_, pairs_, n_), rows(d_v_next, pairs_, 1), true, false, product});
  for (size_t i = 0; i < n_; ++i) gradient[i] += d_l0[i] + d_init[0] * start_[i];
  for (size_t k = 0; k < pairs_; ++k) {
    gradient[at(flow_.state_of[k])] += d_v[k];
    gradient[n_ + at(flow_.state_of[k])] += d_u[k];
  }
  return loss[0];
}

Policy Float32Dual::policy(const Floats& x) {
  bellman_inputs(x);
  Floats y(pairs_), w(pairs_);
  bellman_residual(ctx_, {in(v_), in(v_next_), in(u_), in(discount_), eps2_, vec(y)});
  policy_weights(ctx_, {in(y), Divergence::Kl, vec(w)});
  std::vector<double> masses(w.begin(), w.end());
  const double total = std::accumulate(masses.begin(), masses.end(), 0.0);
  for (double& mass : masses) mass /= total;
  const auto d_sa = expand(flow_, masses, problem_.agnostic_sa.size());
  return policy_from_occupancy(d_sa, problem_.model.n_actions(), Negatives::Keep);
}

double dot(const Floats& a, const Floats& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += static_cast<double>(a[k]) * b[k];
  return sum;
}

// One L-BFGS run; stops when no step lowers the float32 loss any more.
class Lbfgs {
 public:
  explicit Lbfgs(Float32Dual& dual) : dual_(dual) {}

  int run(Floats& x, float& loss, int max_iterations) {
    Floats gradient, trial_gradient;
    loss = dual_.evaluate(x, gradient);
    int iteration = 0, quiet = 0;
    for (; iteration < max_iterations && quiet < kPatience; ++iteration) {
      Floats step = direction(gradient);
      double slope = dot(step, gradient);
      if (slope >= 0) {
        history_.clear();
        step = direction(gradient);
        slope = dot(step, gradient);
      }
      Floats trial = x;
      float trial_loss = loss;
      double t = 1;
      for (; t > 1e-8; t /= 2) {
        for (size_t k = 0; k < x.size(); ++k) trial[k] = static_cast<float>(x[k] + t * step[k]);
        trial_loss = dual_.evaluate(trial, trial_gradient);
        if (trial_loss <= loss + 1e-4 * t * slope) break;
      }
      if (t <= 1e-8) {
        if (history_.empty()) break;
        history_.clear();
        continue;
      }
      quiet = loss - trial_loss < kQuiet ? quiet + 1 : 0;
      remember(x, trial, gradient, trial_gradient);
      x = trial, gradient = trial_gradient, loss = trial_loss;
    }
    return iteration;
  }

 private:
  static constexpr size_t kMemory = 30;
  static constexpr int kPatience = 30;
  static constexpr float kQuiet = 1e-7f;
  struct Pair {
    Floats s, y;
    double rho;
  };

  Floats direction(const Floats& gradient) const {
    Floats q(gradient);
    std::vector<double> alpha(history_.size());
    for (size_t k = history_.size(); k-- > 0;) {
      alpha[k] = history_[k].rho * dot(history_[k].s, q);
      for (size_t i = 0; i < q.size(); ++i) q[i] -= static_cast<float>(alpha[k]) * history_[k].y[i];
    }
    double scale = 0.01;
    if (!history_.empty()) scale = 1 / (history_.back().rho * dot(history_.back().y, history_.back().y));
    for (float& value : q) value *= static_cast<float>(scale);
    for (size_t k = 0; k < history_.size(); ++k) {
      const double beta = history_[k].rho * dot(history_[k].y, q);
      for (size_t i = 0; i < q.size(); ++i) q[i] += static_cast<float>(alpha[k] - beta) * history_[k].s[i];
    }
    for (float& value : q) value = -value;
    return q;
  }

  void remember(const Floats& x, const Floats& trial, const Floats& gradient, const Floats& trial_gradient) {
    Pair pair{trial, trial_gradient, 0};
    for (size_t k = 0; k < x.size(); ++k) pair.s[k] -= x[k], pair.y[k] -= gradient[k];
    const double curvature = dot(pair.s, pair.y);
    if (curvature <= 1e-12 * dot(pair.y, pair.y)) return;
    pair.rho = 1 / curvature;
    history_.push_back(std::move(pair));
    if (history_.size() > kMemory) history_.pop_front();
  }

  Float32Dual& dual_;
  std::deque<Pair> history_;
};

}  // namespace

DualLoss float32_dual_loss(const Problem& problem, const RegOptions& options, const DualPoint& point) {
  check_problem(problem);
  Float32Dual dual(problem, options);
  Floats gradient;
  const float loss = dual.evaluate(dual.gather(point), gradient);
  return {loss, dual.scatter(gradient)};
}

TrainedDual train_float32_dual(const Problem& problem, const RegOptions& options) {
  check_problem(problem);
  constexpr double kStart = 0.3, kShrink = 0.7;
  constexpr int kIterations = 3000;
  Float32Dual dual(problem, options);
  Floats x(dual.size());
  TrainedDual out;
  float loss = 0;
  for (double eps = kStart; eps > std::min(options.eps1, options.eps2); eps *= kShrink) {
    dual.set_eps(std::max(options.eps1, eps), std::max(options.eps2, eps));
    out.iterations += Lbfgs(dual).run(x, loss, kIterations / 10);
  }
  dual.set_eps(options.eps1, options.eps2);
  out.iterations += Lbfgs(dual).run(x, loss, kIterations);
  out.loss = loss;
  out.point = dual.scatter(x);
  out.policy = dual.policy(x);
  return out;
}

}  // namespace pwdice::tabular
