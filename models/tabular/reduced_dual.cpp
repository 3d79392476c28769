// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// With b = e_s - gamma T(.|s,a), the dual loss is
//   eps1 log sum_ij U_ij exp((l1_i + l2_j - c_ij)/eps1) + eps2 log sum_sa W_sa exp((b_sa.l0 - l1_s)/eps2) -
//   p.l0 - d^E.l2
// For fixed l0, l2 its minimum over l1 is explicit. With E = eps1 + eps2,
//   G_i = sum_j U_ij exp((l2_j - c_ij)/eps1)      Q_i = sum_a W_ia exp(b_ia.l0 / eps2)
//   l1_i = eps1 eps2 (log Q_i - log G_i) / E
//   F(l0, l2) = E log sum_i exp(theta_i) - p.l0 - d^E.l2,       theta_i = (eps1 log G_i + eps2 log Q_i) / E
// and the primal is read off: d = softmax(theta), Pi_ij = d_i P_ij, d(s,a) = d_s pi(a|s), with P and pi the
// softmaxes inside G and Q. So a policy is exact in the log domain however small the mass of its state.
//   dF/dl0 = sum_i d_i Bbar_i - p,  dF/dl2 = P^T d - d^E        Bbar_i = sum_a pi(a|i) b_ia
//   H00 = 1/eps2 sum d(s,a) b b^T - (1/eps2 - 1/E) sum d_i Bbar_i Bbar_i^T
//   H22 = 1/eps1 diag(P^T d) - (1/eps1 - 1/E) P^T diag(d) P     H20 = 1/E P^T diag(d) Bbar
// (the Hessian of the unnormalised form at total mass one, as in log_partition.cpp; one flat direction is
// left, a shift of l2 against l0, and is removed by pinning the multiplier of the heaviest expert state).
// Work   unknowns: |S| + number of expert states, instead of 3 |S|. With the indicator cost a value, a
// gradient
//        or a product H v costs O(unknowns + non-zeros of T_hat); conjugate gradients need a few dozen
//        products a Newton step whatever the size, since H scaled to a unit diagonal inherits the mixing of
//        the MDP. Small problems factorise H, (n+m)^3/3 flop, which settles masses of 1e-12 in fewer steps.
// Memory O(unknowns + non-zeros of T_hat); (n+m)^2 where H is factorised, n m with a cost table.
#include "reduced_dual.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "../../kernels/error.h"
#include "conjugate_gradients.h"
#include "metrics.h"

namespace pwdice::tabular {
namespace {

constexpr size_t kBlock = 64;
constexpr Eigen::Index kDenseLimit = 128;  // unknowns up to which Cholesky is the faster way
constexpr double kSolveTolerance = 1e-2;
constexpr int kMaxProducts = 5000;
constexpr double kSmallestDiagonal = 1e-250;
constexpr double kTiniestRatio = 1e-16;  // in / out below this is rounding

size_t at(int index) { return static_cast<size_t>(index); }

Flow flow_of(const Problem& problem, const References& references) {
  std::vector<uint8_t> allowed(problem.n_states());
  for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = references.row_allowed(i);
  return make_flow(problem, references.w(), allowed);
}

std::vector<int> expert_columns(const Problem& problem) {
  std::vector<int> columns;
  for (size_t j = 0; j < problem.n_states(); ++j)
    if (problem.expert_s[j] > 0) columns.push_back(static_cast<int>(j));
  return columns;
}

}  // namespace

ReducedDual::ReducedDual(const Problem& problem, const RegOptions& options)
    : problem_(problem),
      references_(problem, options),
      flow_(flow_of(problem, references_)),
      columns_(expert_columns(problem)),
      plan_(make_transport_plan(problem, references_, flow_.states, columns_)),
      n_(static_cast<Eigen::Index>(flow_.states.size())),
      m_(static_cast<Eigen::Index>(columns_.size())),
      dense_(options.system == NewtonSystem::Automatic ? n_ + m_ <= kDenseLimit
                                                       : options.system == NewtonSystem::Dense),
      eps1_(options.eps1),
      eps2_(options.eps2) {
  const auto heavier = [&](int a, int b) { return problem.expert_s[at(a)] < problem.expert_s[at(b)]; };
  pinned_ = n_ + (std::max_element(columns_.begin(), columns_.end(), heavier) - columns_.begin());
  log_q_.resize(flow_.states.size());
  d_ = per_state_ = per_row_ = log_q_;
  policy_.resize(flow_.rows.size());
  per_pair_ = policy_;
}

double ReducedDual::linear(const Eigen::VectorXd& x) const {
  double sum = std::inner_product(flow_.start.begin(), flow_.start.end(), x.data(), 0.0);
  for (Eigen::Index j = 0; j < m_; ++j)
    sum += problem_.expert_s[at(columns_[static_cast<size_t>(j)])] * x[n_ + j];
  return sum;
}

// Fills the plan, log Q, d and the policy; returns F.
double ReducedDual::evaluate(const Eigen::VectorXd& x) {
  const auto l0 = values(x);
  const double sum_l0 = std::accumulate(l0.begin(), l0.end(), 0.0), total_eps = eps1_ + eps2_;
  for (size_t k = 0; k < policy_.size(); ++k)
    policy_[k] = flow_.log_reference[k] + flow_.rows.dot(k, l0, sum_l0) / eps2_;
  plan_->set(potentials(x), eps1_);
  for (size_t i = 0; i < d_.size(); ++i) {
    const size_t first = flow_.first_pair[i], count = flow_.first_pair[i + 1] - first;
    log_q_[i] = softmax_in_place(std::span(policy_).subspan(first, count));
    d_[i] = (eps1_ * plan_->log_g(i) + eps2_ * log_q_[i]) / total_eps;
  }
  return total_eps * softmax_in_place(d_) - linear(x);
}

double ReducedDual::derivatives(const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
  const double value = evaluate(x);
  const auto flow_part = std::span(gradient.data(), static_cast<size_t>(n_));
  for (size_t s = 0; s < flow_part.size(); ++s) flow_part[s] = -flow_.start[s];
  for (size_t k = 0; k < policy_.size(); ++k) per_pair_[k] = d_[at(flow_.state_of[k])] * policy_[k];
  flow_.rows.accumulate(per_pair_, flow_part);
  column_sum_.resize(m_);
  plan_->apply_transposed(d_, {column_sum_.data(), columns_.size()});
  for (Eigen::Index j = 0; j < m_; ++j)
    gradient[n_ + j] = column_sum_[j] - problem_.expert_s[at(columns_[static_cast<size_t>(j)])];
  if (dense_) gradient[pinned_] = 0;
  return value;
}

bool ReducedDual::prepare(double damping, double ridge) {
  if (dense_) {
    system_.hessian.setZero(size(), size());
    add_flow_hessian(system_.hessian);
    add_transport_hessian(system_.hessian);
    pin(system_.hessian);
    return system_.prepare(damping, ridge);
  }
  damping_ = damping;
  scale_ = (diagonal().array() + damping).max(kSmallestDiagonal).rsqrt();
  ridge_ = ridge;
  return true;
}

Eigen::VectorXd ReducedDual::solve(const Eigen::VectorXd& b, const Eigen::VectorXd& guess) {
  return dense_ ? system_.solve(b) : conjugate_gradients(b, guess);
}

SparseRows ReducedDual::mean_rows() const {
  SparseRows rows(static_cast<int>(n_));
  std::vector<SparseRows::Entry> entries;
  for (size_t i = 0; i < d_.size(); ++i) {
    entries.clear();
    double constant = 0;
    for (size_t k = flow_.first_pair[i]; k < flow_.first_pair[i + 1]; ++k) {
      constant += policy_[k] * flow_.rows.constant(k);
      for (const auto& entry : flow_.rows.entries(k))
        entries.push_back({entry.column, policy_[k] * entry.value});
    }
    rows.append(entries, constant);
  }
  return rows;
}

void ReducedDual::add_flow_hessian(Eigen::MatrixXd& hessian) const {
  std::vector<double> weights(policy_.size()), correction(d_.size());
  for (size_t k = 0; k < weights.size(); ++k) weights[k] = d_[at(flow_.state_of[k])] * policy_[k] / eps2_;
  add_outer_products(flow_.rows, weights, hessian);
  for (size_t i = 0; i < d_.size(); ++i) correction[i] = -(1 / eps2_ - 1 / (eps1_ + eps2_)) * d_[i];
  add_outer_products(mean_rows(), correction, hessian);
}

void ReducedDual::add_transport_hessian(Eigen::MatrixXd& hessian) const {
  const double total_eps = eps1_ + eps2_, curvature = 1 / eps1_ - 1 / total_eps;
  const SparseRows means = mean_rows();
  Eigen::VectorXd everywhere = Eigen::VectorXd::Zero(m_), p(m_);
  auto h22 = hessian.bottomRightCorner(m_, m_);
  auto h20 = hessian.bottomLeftCorner(m_, n_);
  Eigen::MatrixXd tile(m_, static_cast<Eigen::Index>(kBlock));  // sqrt(d_i) P_i, one state per column
  for (size_t first = 0; first < d_.size(); first += kBlock) {
    const size_t count = std::min(kBlock, d_.size() - first);
    for (size_t b = 0; b < count; ++b) {
      const size_t i = first + b;
      plan_->row(i, {p.data(), columns_.size()});
      tile.col(static_cast<Eigen::Index>(b)) = std::sqrt(d_[i]) * p;
      for (const auto& entry : means.entries(i))
        h20.col(entry.column) += (d_[i] * entry.value / total_eps) * p;
      if (means.constant(i) != 0) everywhere += (d_[i] * means.constant(i) / total_eps) * p;
    }
    h22.selfadjointView<Eigen::Lower>().rankUpdate(tile.leftCols(static_cast<Eigen::Index>(count)),
                                                   -curvature);
  }
  h22.diagonal() += column_sum_ / eps1_;
  h20.colwise() += everywhere;
}

void ReducedDual::pin(Eigen::MatrixXd& hessian) const {
  hessian.row(pinned_).setZero();
  hessian.col(pinned_).setZero();
  hessian(pinned_, pinned_) = 1;
}

// The diagonal of H without the constant parts of the rows, which are of the order of 1/n.
Eigen::VectorXd ReducedDual::diagonal() const {
  const double total_eps = eps1_ + eps2_;
  Eigen::VectorXd out = Eigen::VectorXd::Zero(size());
  std::vector<double> mean(d_.size());
  for (size_t i = 0; i < d_.size(); ++i) {
    for (size_t k = flow_.first_pair[i]; k < flow_.first_pair[i + 1]; ++k)
      for (const auto& entry : flow_.rows.entries(k)) {
        out[entry.column] += d_[i] * policy_[k] * entry.value * entry.value / eps2_;
        mean[at(entry.column)] += policy_[k] * entry.value;
      }
    for (size_t k = flow_.first_pair[i]; k < flow_.first_pair[i + 1]; ++k)
      for (const auto& entry : flow_.rows.entries(k)) {
        const double value = std::exchange(mean[at(entry.column)], 0.0);
        out[entry.column] -= (1 / eps2_ - 1 / total_eps) * d_[i] * value * value;
      }
  }
  std::vector<double> squares(columns_.size());
  plan_->apply_squares(d_, squares);
  for (Eigen::Index j = 0; j < m_; ++j)
    out[n_ + j] = column_sum_[j] / eps1_ - (1 / eps1_ - 1 / total_eps) * squares[static_cast<size_t>(j)];
  return out;
}

// With t = b.v0 per pair, y = sum_a pi t and z = P v2 per state:
//   (H v)_0 = sum_sa d(s,a) ((t - y)/eps2 + (y + z)/E) b
//   (H v)_2 = (diag(P^T d) v2 - P^T (d z))/eps1 + P^T (d (y + z))/E
void ReducedDual::product(const Eigen::VectorXd& v, Eigen::VectorXd& out) {
  const auto v0 = values(v);
  const double sum0 = std::accumulate(v0.begin(), v0.end(), 0.0), total_eps = eps1_ + eps2_;
  plan_->apply(potentials(v), per_row_);
  for (size_t i = 0; i < d_.size(); ++i) {
    double y = 0;
    for (size_t k = flow_.first_pair[i]; k < flow_.first_pair[i + 1]; ++k) {
      per_pair_[k] = flow_.rows.dot(k, v0, sum0);
      y += policy_[k] * per_pair_[k];
    }
    const double joint = (y + per_row_[i]) / total_eps;
    for (size_t k = flow_.first_pair[i]; k < flow_.first_pair[i + 1]; ++k)
      per_pair_[k] = d_[i] * policy_[k] * ((per_pair_[k] - y) / eps2_ + joint);
    per_state_[i] = d_[i] * (joint - per_row_[i] / eps1_);
  }
  out.setZero();
  flow_.rows.accumulate(per_pair_, {out.data(), flow_.states.size()});
  plan_->apply_transposed(per_state_, {out.data() + n_, columns_.size()});
  out.tail(m_) += column_sum_.cwiseProduct(v.tail(m_)) / eps1_;
  out += damping_ * v + ridge_ * v.cwiseQuotient(scale_.cwiseProduct(scale_));
}

Eigen::VectorXd ReducedDual::conjugate_gradients(const Eigen::VectorXd& b, const Eigen::VectorXd& guess) {
  // H is flat along a shift of l0 against l2; b must not point there.
  Eigen::VectorXd flat(size());
  flat.head(n_).setConstant(1 / (1 - problem_.gamma));
  flat.tail(m_).setConstant(-1);
  return ConjugateGradients{[this](const Eigen::VectorXd& v, Eigen::VectorXd& out) { product(v, out); },
                            scale_, kSolveTolerance, kMaxProducts}
      .solve(b - flat * (flat.dot(b) / flat.squaredNorm()), guess);
}

// F(x + step) - F(x) = slope + sum_i d_i (eps1 R^G_i + eps2 R^Q_i) + E R(d, delta theta), where each R >= 0
// is what a log-partition function adds to its tangent.
double ReducedDual::change(const Eigen::VectorXd& step, double slope) {
  const auto step0 = values(step);
  const double sum0 = std::accumulate(step0.begin(), step0.end(), 0.0), total_eps = eps1_ + eps2_;
  std::vector<double> u2(columns_.size()), mean(d_.size()), remainder(d_.size()), theta(d_.size());
  for (size_t j = 0; j < u2.size(); ++j) u2[j] = step[n_ + static_cast<Eigen::Index>(j)] / eps1_;
  plan_->cumulants(u2, mean, remainder);
  for (size_t k = 0; k < per_pair_.size(); ++k) per_pair_[k] = flow_.rows.dot(k, step0, sum0) / eps2_;
  double change = slope;
  for (size_t i = 0; i < d_.size(); ++i) {
    const size_t first = flow_.first_pair[i], count = flow_.first_pair[i + 1] - first;
    double mean_q = 0;
    const double q = cumulant_remainder(std::span(policy_).subspan(first, count),
                                        std::span(per_pair_).subspan(first, count), &mean_q);
    theta[i] = (eps1_ * (mean[i] + remainder[i]) + eps2_ * (mean_q + q)) / total_eps;
    change += d_[i] * (eps1_ * remainder[i] + eps2_ * q);
  }
  return change + total_eps * cumulant_remainder(d_, theta);
}

// A balance out = in is met faster in logarithms. The gradient of a state is out - in with a curvature of
// about (out + in)/eps; that of a column is sum - d^E with a curvature of about sum/eps.
void ReducedDual::logarithmic_residual(Eigen::VectorXd& gradient) const {
  for (Eigen::Index s = 0; s < n_; ++s) {
    const double out = d_[static_cast<size_t>(s)], in = std::max(out - gradient[s], kTiniestRatio * out);
    if (out > 0) gradient[s] = (out + in) / 2 * std::log(out / in);
  }
  for (Eigen::Index j = 0; j < m_; ++j)
    if (!(dense_ && n_ + j == pinned_) && column_sum_[j] > 0)
      gradient[n_ + j] =
          column_sum_[j] * std::log(column_sum_[j] / problem_.expert_s[at(columns_[static_cast<size_t>(j)])]);
}

RegSolution ReducedDual::solution(const Eigen::VectorXd& x) {
  RegSolution out;
  out.dual_minimum = evaluate(x);
  const size_t n_all = problem_.n_states();
  out.lambda_value.assign(n_all, 0.0);
  out.lambda_pi = out.lambda_expert = out.lambda_value;
  std::vector<double> d_sa(policy_.size()), column_sum(columns_.size());
  const TransportPlan::Totals totals = plan_->totals(d_);
  double objective = totals.cost + eps1_ * totals.divergence;
  for (size_t i = 0; i < d_.size(); ++i) {
    const size_t s = at(flow_.states[i]);
    out.lambda_value[s] = x[static_cast<Eigen::Index>(i)];
    out.lambda_pi[s] = eps1_ * eps2_ * (log_q_[i] - plan_->log_g(i)) / (eps1_ + eps2_);
    for (size_t k = flow_.first_pair[i]; k < flow_.first_pair[i + 1]; ++k) {
      d_sa[k] = d_[i] * policy_[k];
      if (d_sa[k] > 0) objective += eps2_ * d_sa[k] * (std::log(d_sa[k]) - flow_.log_reference[k]);
    }
    if (d_[i] > 0) objective += eps1_ * d_[i] * std::log(d_[i]);
  }
  out.transport_cost = totals.cost;
  out.objective = objective;
  out.duality_gap = out.objective + out.dual_minimum;
  plan_->apply_transposed(d_, column_sum);
  for (size_t j = 0; j < columns_.size(); ++j) {
    const size_t t = at(columns_[j]);
    out.lambda_expert[t] = x[n_ + static_cast<Eigen::Index>(j)];
    out.column_residual = std::max(out.column_residual, std::abs(column_sum[j] - problem_.expert_s[t]));
  }
  out.d_sa = expand(flow_, d_sa, problem_.agnostic_sa.size());
  out.d_s = state_marginal(out.d_sa, problem_.model.n_actions());
  out.policy = policy_from_occupancy(out.d_sa, problem_.model.n_actions(), Negatives::Keep);
  out.constraint_residual = std::max(out.column_residual, flow_residual(problem_, out.d_sa));
  return out;
}

}  // namespace pwdice::tabular
