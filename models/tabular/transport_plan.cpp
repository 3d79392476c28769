// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// A cost table (TablePlan): P is stored, no larger than the table itself; an operation costs O(n m).
//
// Indicator cost c_ij = 1[i != j] (IndicatorPlan): with U_ij = floor + r_i k_j and h = exp(-1/eps1),
//   U_ij exp((l2_j - c_ij)/eps1) = floor h e^(l2_j/eps1) + r_i h k_j e^(l2_j/eps1) + 1[i=j] U_ii (1-h)
//   e^(l2_i/eps1)
// so that   P_i = alpha_i f + beta_i g + kappa_i e_i,    f = softmax(l2/eps1), g = softmax(log k + l2/eps1),
// where alpha_i + beta_i + kappa_i = 1 are the softmax of
//   log floor - 1/eps1 + A,   log r_i - 1/eps1 + B,   log U_ii + log(1-h) + l2_i/eps1        A, B: lse of f,
//   g
// and log G_i their log-sum-exp. Every term is positive: a column of mass 1e-12 keeps all its digits.
#include "transport_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "newton.h"

namespace pwdice::tabular {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

class TablePlan final : public TransportPlan {
 public:
  TablePlan(const Problem& problem, const References& references, std::span<const int> states,
            std::span<const int> columns)
      : TransportPlan(problem, references, states, columns), plan_(rows() * this->columns()) {}

  void set(std::span<const double> l2, double eps1) override {
    for (size_t i = 0; i < rows(); ++i) {
      const auto p = std::span(plan_).subspan(i * columns(), columns());
      for (size_t j = 0; j < p.size(); ++j)
        p[j] = references_.log_u(states_[i], columns_[j]) +
               (l2[j] - problem_.cost(states_[i], columns_[j])) / eps1;
      log_g_[i] = softmax_in_place(p);
    }
  }

  void row(size_t i, std::span<double> p) const override { std::ranges::copy(row(i), p.begin()); }

  void apply(std::span<const double> v, std::span<double> out) const override {
    for (size_t i = 0; i < rows(); ++i) out[i] = dot(row(i), v);
  }

  void apply_transposed(std::span<const double> w, std::span<double> out) const override {
    std::fill(out.begin(), out.end(), 0.0);
    for (size_t i = 0; i < rows(); ++i)
      for (size_t j = 0; j < out.size(); ++j) out[j] += w[i] * row(i)[j];
  }

  void apply_squares(std::span<const double> w, std::span<double> out) const override {
    std::fill(out.begin(), out.end(), 0.0);
    for (size_t i = 0; i < rows(); ++i)
      for (size_t j = 0; j < out.size(); ++j) out[j] += w[i] * row(i)[j] * row(i)[j];
  }

  void cumulants(std::span<const double> u, std::span<double> mean,
                 std::span<double> remainder) const override {
    for (size_t i = 0; i < rows(); ++i) remainder[i] = cumulant_remainder(row(i), u, &mean[i]);
  }

  Totals totals(std::span<const double> w) const override {
    Totals out;
    for (size_t i = 0; i < rows(); ++i)
      for (size_t j = 0; j < columns(); ++j) {
        const double p = row(i)[j], mass = w[i] * p;
        if (mass <= 0) continue;
        out.cost += mass * problem_.cost(states_[i], columns_[j]);
        out.divergence += mass * (std::log(p) - references_.log_u(states_[i], columns_[j]));
      }
    return out;
  }

 private:
  std::span<const double> row(size_t i) const { return std::span(plan_).subspan(i * columns(), columns()); }

  std::vector<double> plan_;  // (rows, columns)
};

class IndicatorPlan final : public TransportPlan {
 public:
  IndicatorPlan(const Problem& problem, const References& references, std::span<const int> states,
                std::span<const int> columns)
      : TransportPlan(problem, references, states, columns),
        column_of_(rows(), -1),
        f_(columns_.size()),
        g_(f_),
        weights_(rows()) {
    for (size_t i = 0, j = 0; i < rows(); ++i) {  // both lists ascend
      while (j < columns_.size() && columns_[j] < states_[i]) ++j;
      if (j < columns_.size() && columns_[j] == states_[i]) column_of_[i] = static_cast<std::ptrdiff_t>(j);
    }
  }

  void set(std::span<const double> l2, double eps1) override {
    l2_.assign(l2.begin(), l2.end());
    eps1_ = eps1;
    for (size_t j = 0; j < f_.size(); ++j) {
      f_[j] = l2[j] / eps1;
      g_[j] = f_[j] + references_.log_column(columns_[j]);
    }
    const double everywhere = references_.log_floor() - 1 / eps1 + softmax_in_place(f_);
    const double b = softmax_in_place(g_) - 1 / eps1;
    if (b == kNothing) std::fill(g_.begin(), g_.end(), 0.0);  // k is zero on all expert states
    const double log_match = std::log(-std::expm1(-1 / eps1));
    for (size_t i = 0; i < rows(); ++i) {
      auto& w = weights_[i];
      w = {everywhere, b == kNothing ? kNothing : references_.log_row(states_[i]) + b, kNothing};
      if (column_of_[i] >= 0)
        w[2] = references_.log_u(states_[i], states_[i]) + log_match +
               l2[static_cast<size_t>(column_of_[i])] / eps1;
      log_g_[i] = softmax_in_place(w);
    }
  }

  void row(size_t i, std::span<double> p) const override {
    const auto [alpha, beta, kappa] = weights_[i];
    for (size_t j = 0; j < p.size(); ++j) p[j] = alpha * f_[j] + beta * g_[j];
    if (column_of_[i] >= 0) p[matched(i)] += kappa;
  }

  void apply(std::span<const double> v, std::span<double> out) const override {
    const double f = dot(f_, v), g = dot(g_, v);
    for (size_t i = 0; i < rows(); ++i) {
      const auto [alpha, beta, kappa] = weights_[i];
      out[i] = alpha * f + beta * g + (column_of_[i] >= 0 ? kappa * v[matched(i)] : 0.0);
    }
  }

  void apply_transposed(std::span<const double> w, std::span<double> out) const override {
    double f = 0, g = 0;
    for (size_t i = 0; i < rows(); ++i) f += w[i] * weights_[i][0], g += w[i] * weights_[i][1];
    for (size_t j = 0; j < out.size(); ++j) out[j] = f * f_[j] + g * g_[j];
    for (size_t i = 0; i < rows(); ++i)
      if (column_of_[i] >= 0) out[matched(i)] += w[i] * weights_[i][2];
  }

  void apply_squares(std::span<const double> w, std::span<double> out) const override {
    double ff = 0, fg = 0, gg = 0;
    for (size_t i = 0; i < rows(); ++i) {
      const double alpha = weights_[i][0], beta = weights_[i][1];
      ff += w[i] * alpha * alpha, fg += w[i] * alpha * beta, gg += w[i] * beta * beta;
    }
    for (size_t j = 0; j < out.size(); ++j)
      out[j] = ff * f_[j] * f_[j] + 2 * fg * f_[j] * g_[j] + gg * g_[j] * g_[j];
    for (size_t i = 0; i < rows(); ++i) {
      if (column_of_[i] < 0) continue;
      const auto [alpha, beta, kappa] = weights_[i];
      const size_t j = matched(i);
      out[j] += w[i] * kappa * (kappa + 2 * (alpha * f_[j] + beta * g_[j]));
    }
  }

  // A mixture of three parts: the remainder is that of the parts' own totals, plus the mean of the parts'
  // remainders.
  void cumulants(std::span<const double> u, std::span<double> mean,
                 std::span<double> remainder) const override {
    double mean_f = 0, mean_g = 0;
    const double rest_f = cumulant_remainder(f_, u, &mean_f), rest_g = cumulant_remainder(g_, u, &mean_g);
    for (size_t i = 0; i < rows(); ++i) {
      const auto [alpha, beta, kappa] = weights_[i];
      const double own = column_of_[i] >= 0 ? u[matched(i)] : 0.0;
      const std::array parts{mean_f + rest_f, mean_g + rest_g, own};
      mean[i] = alpha * mean_f + beta * mean_g + kappa * own;
      remainder[i] = cumulant_remainder(weights_[i], parts) + alpha * rest_f + beta * rest_g;
    }
  }

  // log(P_ij / U_ij) = (l2_j - c_ij)/eps1 - log G_i, so the sum needs P's products only.
  Totals totals(std::span<const double> w) const override {
    Totals out;
    const double f = dot(f_, l2_), g = dot(g_, l2_);
    for (size_t i = 0; i < rows(); ++i) {
      const auto [alpha, beta, kappa] = weights_[i];
      const bool match = column_of_[i] >= 0;
      const double cost =
          match ? alpha * (1 - f_[matched(i)]) + beta * (1 - g_[matched(i)]) : 1.0;  // what is not matched
      const double potential = alpha * f + beta * g + (match ? kappa * l2_[matched(i)] : 0.0);
      out.cost += w[i] * cost;
      out.divergence += w[i] * ((potential - cost) / eps1_ - log_g_[i]);
    }
    return out;
  }

 private:
  size_t matched(size_t i) const { return static_cast<size_t>(column_of_[i]); }

  std::vector<std::ptrdiff_t> column_of_;  // of a kept state that is an expert state, or -1
  std::vector<double> l2_, f_, g_;
  std::vector<std::array<double, 3>> weights_;  // alpha, beta, kappa
  double eps1_ = 1;
};

}  // namespace

TransportPlan::TransportPlan(const Problem& problem, const References& references,
                             std::span<const int> states, std::span<const int> columns)
    : problem_(problem),
      references_(references),
      states_(states.begin(), states.end()),
      columns_(columns.begin(), columns.end()),
      log_g_(states.size()) {}

std::unique_ptr<TransportPlan> make_transport_plan(const Problem& problem, const References& references,
                                                   std::span<const int> states,
                                                   std::span<const int> columns) {
  if (problem.cost.table.empty())
    return std::make_unique<IndicatorPlan>(problem, references, states, columns);
  return std::make_unique<TablePlan>(problem, references, states, columns);
}

}  // namespace pwdice::tabular
