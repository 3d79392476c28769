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
// Work   unknowns: |S| + number of expert states, instead of 3 |S|. One evaluation streams the n x m block of
// Pi in
//        tiles of kBlock rows, twice; the Cholesky factorisation, (n+m)^3/3 flop, dominates from a few
//        hundred states.
// Memory (n+m)^2 doubles for the Hessian and a tile; neither c, U nor Pi is stored.
#include "reduced_dual.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../../kernels/error.h"
#include "metrics.h"

namespace pwdice::tabular {
namespace {

constexpr size_t kBlock = 64;
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
      n_(static_cast<Eigen::Index>(flow_.states.size())),
      m_(static_cast<Eigen::Index>(columns_.size())),
      eps1_(options.eps1),
      eps2_(options.eps2) {
  const auto heavier = [&](int a, int b) { return problem.expert_s[at(a)] < problem.expert_s[at(b)]; };
  pinned_ = n_ + (std::max_element(columns_.begin(), columns_.end(), heavier) - columns_.begin());
  log_g_.resize(flow_.states.size());
  log_q_ = d_ = log_g_;
  scratch_.resize(columns_.size());
}

double ReducedDual::linear(const Eigen::VectorXd& x) const {
  double sum = std::inner_product(flow_.start.begin(), flow_.start.end(), x.data(), 0.0);
  for (Eigen::Index j = 0; j < m_; ++j)
    sum += problem_.expert_s[at(columns_[static_cast<size_t>(j)])] * x[n_ + j];
  return sum;
}

void ReducedDual::transport_row(size_t i, const Eigen::VectorXd& x, std::span<double> out) const {
  const size_t s = at(flow_.states[i]);
  for (size_t j = 0; j < columns_.size(); ++j) {
    const size_t t = at(columns_[j]);
    out[j] = references_.log_u(s, t) + (x[n_ + static_cast<Eigen::Index>(j)] - problem_.cost(s, t)) / eps1_;
  }
}

// Fills log G, log Q, d and the policy; returns F.
double ReducedDual::evaluate(const Eigen::VectorXd& x) {
  const auto l0 = view(x).first(static_cast<size_t>(n_));
  const double sum_l0 = std::accumulate(l0.begin(), l0.end(), 0.0);
  policy_.resize(flow_.rows.size());
  for (size_t k = 0; k < policy_.size(); ++k)
    policy_[k] = flow_.log_reference[k] + flow_.rows.dot(k, l0, sum_l0) / eps2_;
  const double total_eps = eps1_ + eps2_;
  for (size_t i = 0; i < d_.size(); ++i) {
    const size_t first = flow_.first_pair[i], count = flow_.first_pair[i + 1] - first;
    log_q_[i] = softmax_in_place(std::span(policy_).subspan(first, count));
    transport_row(i, x, scratch_);
    log_g_[i] = log_sum_exp(scratch_);
    d_[i] = (eps1_ * log_g_[i] + eps2_ * log_q_[i]) / total_eps;
  }
  return total_eps * softmax_in_place(d_) - linear(x);
}

double ReducedDual::value(const Eigen::VectorXd& x) { return evaluate(x); }

double ReducedDual::derivatives(const Eigen::VectorXd& x, Eigen::VectorXd& gradient,
                                Eigen::MatrixXd& hessian) {
  const double value = evaluate(x);
  x_ = x;
  gradient.setZero();
  hessian.setZero();
  add_flow_terms(gradient, hessian);
  add_transport_terms(x, gradient, hessian);
  pin(gradient, hessian);
  return value;
}

void ReducedDual::add_flow_terms(Eigen::VectorXd& gradient, Eigen::MatrixXd& hessian) {
  mean_rows_ = SparseRows(static_cast<int>(n_));
  std::vector<double> d_sa(policy_.size());
  std::vector<SparseRows::Entry> entries;
  for (size_t i = 0; i < d_.size(); ++i) {
    entries.clear();
    double constant = 0;
    for (size_t k = flow_.first_pair[i]; k < flow_.first_pair[i + 1]; ++k) {
      d_sa[k] = d_[i] * policy_[k];
      constant += policy_[k] * flow_.rows.constant(k);
      for (const auto& entry : flow_.rows.entries(k))
        entries.push_back({entry.column, policy_[k] * entry.value});
    }
    mean_rows_.append(entries, constant);
  }
  const auto l0_part = std::span(gradient.data(), static_cast<size_t>(n_));
  for (size_t s = 0; s < l0_part.size(); ++s) l0_part[s] = -flow_.start[s];
  flow_.rows.accumulate(d_sa, l0_part);

  const double total_eps = eps1_ + eps2_;
  for (double& mass : d_sa) mass /= eps2_;
  add_outer_products(flow_.rows, d_sa, hessian);
  std::vector<double> correction(d_.size());
  for (size_t i = 0; i < d_.size(); ++i) correction[i] = -(1 / eps2_ - 1 / total_eps) * d_[i];
  add_outer_products(mean_rows_, correction, hessian);
}

void ReducedDual::add_transport_terms(const Eigen::VectorXd& x, Eigen::VectorXd& gradient,
                                      Eigen::MatrixXd& hessian) {
  const double total_eps = eps1_ + eps2_, curvature = 1 / eps1_ - 1 / total_eps;
  Eigen::VectorXd everywhere = Eigen::VectorXd::Zero(m_);
  column_sum_.setZero(m_);
  auto h22 = hessian.bottomRightCorner(m_, m_);
  auto h20 = hessian.bottomLeftCorner(m_, n_);
  Eigen::MatrixXd tile(m_, static_cast<Eigen::Index>(kBlock));  // sqrt(d_i) P_i, one state per column
  for (size_t first = 0; first < d_.size(); first += kBlock) {
    const size_t count = std::min(kBlock, d_.size() - first);
    for (size_t b = 0; b < count; ++b) {
      const size_t i = first + b;
      transport_row(i, x, scratch_);
      for (double& value : scratch_) value = std::exp(value - log_g_[i]);
      const auto p = Eigen::Map<const Eigen::VectorXd>(scratch_.data(), m_);
      column_sum_ += d_[i] * p;
      tile.col(static_cast<Eigen::Index>(b)) = std::sqrt(d_[i]) * p;
      for (const auto& entry : mean_rows_.entries(i))
        h20.col(entry.column) += (d_[i] * entry.value / total_eps) * p;
      if (mean_rows_.constant(i) != 0) everywhere += (d_[i] * mean_rows_.constant(i) / total_eps) * p;
    }
    h22.selfadjointView<Eigen::Lower>().rankUpdate(tile.leftCols(static_cast<Eigen::Index>(count)),
                                                   -curvature);
  }
  h22.diagonal() += column_sum_ / eps1_;
  h20.colwise() += everywhere;
  for (Eigen::Index j = 0; j < m_; ++j)
    gradient[n_ + j] = column_sum_[j] - problem_.expert_s[at(columns_[static_cast<size_t>(j)])];
}

void ReducedDual::pin(Eigen::VectorXd& gradient, Eigen::MatrixXd& hessian) const {
  gradient[pinned_] = 0;
  hessian.row(pinned_).setZero();
  hessian.col(pinned_).setZero();
  hessian(pinned_, pinned_) = 1;
}

// F(x + step) - F(x) = slope + sum_i d_i (eps1 R^G_i + eps2 R^Q_i) + E R(d, delta theta), where each R >= 0
// is what a log-partition function adds to its tangent.
double ReducedDual::change(const Eigen::VectorXd& step, double slope) {
  const auto step0 = view(step).first(static_cast<size_t>(n_));
  const double sum0 = std::accumulate(step0.begin(), step0.end(), 0.0), total_eps = eps1_ + eps2_;
  std::vector<double> u2(columns_.size()), u0(policy_.size()), theta(d_.size());
  for (size_t j = 0; j < u2.size(); ++j) u2[j] = step[n_ + static_cast<Eigen::Index>(j)] / eps1_;
  for (size_t k = 0; k < u0.size(); ++k) u0[k] = flow_.rows.dot(k, step0, sum0) / eps2_;
  double change = slope;
  for (size_t i = 0; i < d_.size(); ++i) {
    transport_row(i, x_, scratch_);
    for (double& value : scratch_) value = std::exp(value - log_g_[i]);
    const size_t first = flow_.first_pair[i], count = flow_.first_pair[i + 1] - first;
    double mean_g = 0, mean_q = 0;
    const double g = cumulant_remainder(scratch_, u2, &mean_g);
    const double q = cumulant_remainder(std::span(policy_).subspan(first, count),
                                        std::span(u0).subspan(first, count), &mean_q);
    theta[i] = (eps1_ * (mean_g + g) + eps2_ * (mean_q + q)) / total_eps;
    change += d_[i] * (eps1_ * g + eps2_ * q);
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
    if (n_ + j != pinned_ && column_sum_[j] > 0)
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
  double objective = 0;
  for (size_t i = 0; i < d_.size(); ++i) {
    const size_t s = at(flow_.states[i]);
    out.lambda_value[s] = x[static_cast<Eigen::Index>(i)];
    out.lambda_pi[s] = eps1_ * eps2_ * (log_q_[i] - log_g_[i]) / (eps1_ + eps2_);
    for (size_t k = flow_.first_pair[i]; k < flow_.first_pair[i + 1]; ++k) {
      d_sa[k] = d_[i] * policy_[k];
      if (d_sa[k] > 0) objective += eps2_ * d_sa[k] * (std::log(d_sa[k]) - flow_.log_reference[k]);
    }
    transport_row(i, x, scratch_);
    for (size_t j = 0; j < columns_.size(); ++j) {
      const double mass = d_[i] * std::exp(scratch_[j] - log_g_[i]);
      if (mass <= 0) continue;
      const size_t t = at(columns_[j]);
      column_sum[j] += mass;
      out.transport_cost += mass * problem_.cost(s, t);
      objective += eps1_ * mass * (std::log(mass) - references_.log_u(s, t));
    }
  }
  out.objective = objective + out.transport_cost;
  out.duality_gap = out.objective + out.dual_minimum;
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
