// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "flow.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../../kernels/error.h"

namespace pwdice::tabular {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

// Removes pairs that lead to a forbidden state and states without a pair, until nothing changes.
std::vector<uint8_t> prune_pairs(const TransitionModel& model, std::span<const double> reference,
                                 std::vector<uint8_t> state_ok) {
  std::vector<uint8_t> pair_ok(reference.size());
  for (bool changed = true; changed;) {
    changed = false;
    const bool all_ok = std::find(state_ok.begin(), state_ok.end(), 0) == state_ok.end();
    for (int row = 0; row < model.n_rows(); ++row) {
      const auto entries = model.entries(row);
      pair_ok[at(row)] = reference[at(row)] > 0 && state_ok[at(row / model.n_actions())] &&
                         (!model.is_uniform(row) || all_ok) &&
                         std::all_of(entries.begin(), entries.end(), [&](const auto& entry) {
                           return entry.probability == 0 || state_ok[at(entry.next)];
                         });
    }
    for (int s = 0; s < model.n_states(); ++s) {
      const auto first = pair_ok.begin() + s * model.n_actions();
      if (state_ok[at(s)] && std::find(first, first + model.n_actions(), 1) == first + model.n_actions()) {
        state_ok[at(s)] = 0;
        changed = true;
      }
    }
  }
  return pair_ok;
}

void append_pair(Flow& flow, const TransitionModel& model, int row, double gamma) {
  const int position = flow.index[at(row / model.n_actions())];
  std::vector<SparseRows::Entry> entries{{position, 1.0}};
  for (const auto& entry : model.entries(row)) {
    if (entry.probability == 0) continue;
    const int next = flow.index[at(entry.next)];
    if (next == position) {
      entries[0].value -= gamma * entry.probability;
    } else {
      entries.push_back({next, -gamma * entry.probability});
    }
  }
  flow.rows.append(entries, model.is_uniform(row) ? -gamma / model.n_states() : 0.0);
}

}  // namespace

void SparseRows::append(std::span<const Entry> entries, double constant) {
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  begin_.push_back(entries_.size());
  constant_.push_back(constant);
}

double SparseRows::dot(size_t k, std::span<const double> x, double sum_x) const {
  double sum = constant_[k] * sum_x;
  for (const Entry& entry : entries(k)) sum += entry.value * x[at(entry.column)];
  return sum;
}

void SparseRows::accumulate(std::span<const double> weights, std::span<double> out) const {
  double everywhere = 0;
  for (size_t k = 0; k < size(); ++k) {
    everywhere += weights[k] * constant_[k];
    for (const Entry& entry : entries(k)) out[at(entry.column)] += weights[k] * entry.value;
  }
  if (everywhere == 0) return;
  for (double& value : out) value += everywhere;
}

Flow make_flow(const Problem& problem, std::span<const double> reference_sa,
               std::span<const uint8_t> state_allowed) {
  const TransitionModel& model = problem.model;
  PWDICE_CHECK(reference_sa.size() == at(model.n_rows()), "flow: {} reference masses, expected {}",
               reference_sa.size(), model.n_rows());
  std::vector<uint8_t> state_ok(at(model.n_states()), 1);
  if (!state_allowed.empty()) state_ok.assign(state_allowed.begin(), state_allowed.end());
  const auto pair_ok = prune_pairs(model, reference_sa, state_ok);
  const auto reachable = reachable_states(model, problem.p0, pair_ok);

  Flow flow;
  flow.index.assign(at(model.n_states()), -1);
  for (int s = 0; s < model.n_states(); ++s) {
    if (!reachable[at(s)]) continue;
    const auto first = pair_ok.begin() + s * model.n_actions();
    PWDICE_CHECK(std::find(first, first + model.n_actions(), 1) != first + model.n_actions(),
                 "flow: state {} must carry mass, but the references allow no action there", s);
    flow.index[at(s)] = static_cast<int>(flow.states.size());
    flow.states.push_back(s);
    flow.start.push_back((1 - problem.gamma) * problem.p0[at(s)]);
  }
  flow.rows = SparseRows(static_cast<int>(flow.states.size()));
  for (const int s : flow.states) {
    flow.first_pair.push_back(flow.model_row.size());
    for (int row = s * model.n_actions(); row < (s + 1) * model.n_actions(); ++row) {
      if (!pair_ok[at(row)]) continue;
      flow.model_row.push_back(row);
      flow.state_of.push_back(flow.index[at(s)]);
      flow.log_reference.push_back(std::log(reference_sa[at(row)]));
      append_pair(flow, model, row, problem.gamma);
    }
  }
  flow.first_pair.push_back(flow.model_row.size());
  return flow;
}

std::vector<double> expand(const Flow& flow, std::span<const double> masses, size_t n_pairs) {
  std::vector<double> out(n_pairs);
  for (size_t k = 0; k < masses.size(); ++k) out[at(flow.model_row[k])] = masses[k];
  return out;
}

double flow_residual(const Problem& problem, std::span<const double> d_sa) {
  std::vector<double> inflow(problem.n_states());
  problem.model.push_forward(d_sa, inflow);
  const auto d = state_marginal(d_sa, problem.model.n_actions());
  double worst = 0;
  for (size_t s = 0; s < d.size(); ++s)
    worst = std::max(worst, std::abs(d[s] - (1 - problem.gamma) * problem.p0[s] - problem.gamma * inflow[s]));
  return worst;
}

}  // namespace pwdice::tabular
