// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// op/transport/<joint|semidual|chi2|paired>/<n>x<m>    the transport terms on embeddings, d = 32
// op/objective/1200000x1000      the exact dual objective of a whole data set: column_lse and bellman
// step/dual_paired/1024, step/dual_all_pairs/<n>x<m>   the dual's training step: six draws, gathers, one
// trunk
//                                                      call, losses, backward, Adam
// A loss is checked against double over all pairs, its gradient along itself: (L(p + h g) - L(p - h g)) / 2h must be
// |g|^2. A step is checked on data of one state, where the potentials cancel and the loss is the reward.
#include <algorithm>

#include "../kernels/bellman.h"
#include "../models/potentials.h"
#include "dual_tables.h"
#include "suite.h"

namespace pwdice::bench {
namespace {

constexpr float kBeta = 5.f, kEps = 0.5f;

Work pair_work(int64_t n, int64_t m, bool exponentials) {
  const double pairs = static_cast<double>(n) * static_cast<double>(m);
  return {2 * pairs * static_cast<double>(kFeatures), exponentials ? pairs : 0};
}

struct Pairs {
  int64_t n, m;
  std::vector<float> x, y, reward, a, b, q, d_a, d_b, col_lse;
  float loss = 0;

  Pairs(int64_t rows, int64_t cols) : n(rows), m(cols) {
    x = random_embeddings(n, 1), y = random_embeddings(m, 2);
    reward = random_values(n, 1, 3), a = random_values(n, 1, 4), b = random_values(m, 1, 5);
    q.assign(static_cast<size_t>(m), 1.f / static_cast<float>(m));
    d_a.resize(a.size()), d_b.resize(b.size()), col_lse.resize(b.size());
  }
  PairCost cost() const {
    return {Distance::SquaredEuclidean,
            kBeta,
            {x.data(), n, kFeatures},
            {y.data(), m, kFeatures},
            {reward.data(), n}};
  }
  Vec<const float> states() const { return {a.data(), n}; }
  Vec<const float> experts() const { return {b.data(), m}; }
  Vec<const float> mass() const { return {q.data(), m}; }

  void joint(Context& ctx) {
    transport_joint(
        ctx, {cost(), states(), experts(), mass(), kEps, {&loss, 1}, {d_a.data(), n}, {d_b.data(), m}});
  }
  void semidual(Context& ctx) {
    transport_semidual(ctx,
                       {cost(), states(), mass(), kEps, {&loss, 1}, {d_a.data(), n}, {col_lse.data(), m}});
  }
  void chi2(Context& ctx) {
    transport_chi2(ctx, {cost(),
                         states(),
                         experts(),
                         mass(),
                         kEps,
                         Divergence::Chi2,
                         {&loss, 1},
                         {d_a.data(), n},
                         {d_b.data(), m}});
  }
  void paired(Context& ctx) {
    transport_paired(
        ctx,
        {cost(), states(), experts(), kEps, Divergence::Kl, {&loss, 1}, {d_a.data(), n}, {d_b.data(), m}});
  }
  void columns(Context& ctx) { column_lse(ctx, {cost(), states(), kEps, {col_lse.data(), m}}); }

  double cost_of(int64_t i, int64_t j) const {  // with -R_i
    double sum = 0;
    for (int64_t k = 0; k < kFeatures; ++k) {
      const double t = static_cast<double>(x[static_cast<size_t>(i * kFeatures + k)]) -
                       static_cast<double>(y[static_cast<size_t>(j * kFeatures + k)]);
      sum += t * t;
    }
    return static_cast<double>(kBeta) * sum - static_cast<double>(reward[static_cast<size_t>(i)]);
  }
};

// -- the same in double ----------------------------------------------------------------------------------

double log_sum_exp(const std::vector<double>& s) {
  const double top = *std::max_element(s.begin(), s.end());
  double sum = 0;
  for (const double v : s) sum += std::exp(v - top);
  return top + std::log(sum);
}

// The losses as functions of the potentials; everything in units of eps.
struct Potential {
  std::vector<double> a, b;

  explicit Potential(const Pairs& p) : a(p.a.begin(), p.a.end()), b(p.b.begin(), p.b.end()) {}
  double minus_cost(const Pairs& p, int64_t i, int64_t j) const {  // (a_i - c_ij) / eps
    return (a[static_cast<size_t>(i)] - p.cost_of(i, j)) / static_cast<double>(kEps);
  }
  double expert(int64_t j) const { return b[static_cast<size_t>(j)] / static_cast<double>(kEps); }
  double column_lse(const Pairs& p, int64_t j) const {
    std::vector<double> s;
    for (int64_t i = 0; i < p.n; ++i) s.push_back(minus_cost(p, i, j));
    return log_sum_exp(s) - std::log(static_cast<double>(p.n));
  }
};
using Loss = double (*)(const Pairs&, const Potential&);

double joint_loss(const Pairs& p, const Potential& at) {
  std::vector<double> s;
  for (int64_t j = 0; j < p.m; ++j)
    s.push_back(at.column_lse(p, j) + at.expert(j) +
                std::log(static_cast<double>(p.q[static_cast<size_t>(j)])));
  return static_cast<double>(kEps) * log_sum_exp(s);
}

double semidual_loss(const Pairs& p, const Potential& at) {
  double sum = 0;
  for (int64_t j = 0; j < p.m; ++j)
    sum += static_cast<double>(p.q[static_cast<size_t>(j)]) * at.column_lse(p, j);
  return static_cast<double>(kEps) * sum;
}

double chi2_loss(const Pairs& p, const Potential& at) {
  double sum = 0;
  for (int64_t i = 0; i < p.n; ++i) {
    for (int64_t j = 0; j < p.m; ++j) {
      const double y = at.minus_cost(p, i, j) + at.expert(j);
      sum += (y + 1) * (y + 1) / 2 * static_cast<double>(p.q[static_cast<size_t>(j)]);
    }
  }
  return static_cast<double>(kEps) * sum / static_cast<double>(p.n);
}

double paired_loss(const Pairs& p, const Potential& at) {
  std::vector<double> s;
  for (int64_t i = 0; i < p.n; ++i) s.push_back(at.minus_cost(p, i, i) + at.expert(i));
  return static_cast<double>(kEps) * (log_sum_exp(s) - std::log(static_cast<double>(p.n)));
}

bool is_right(const Pairs& p, Loss loss) {
  const double want = loss(p, Potential(p));
  double squares = 0;
  for (const float g : p.d_a) squares += static_cast<double>(g) * static_cast<double>(g);
  for (const float g : p.d_b) squares += static_cast<double>(g) * static_cast<double>(g);
  const auto moved = [&](double step) {
    Potential at(p);
    for (size_t i = 0; i < at.a.size(); ++i) at.a[i] += step * static_cast<double>(p.d_a[i]);
    for (size_t j = 0; j < at.b.size(); ++j) at.b[j] += step * static_cast<double>(p.d_b[j]);
    return loss(p, at);
  };
  const double step = 1e-3 / std::sqrt(squares);
  return close(static_cast<double>(p.loss), want, std::abs(want) + 1) &&
         close((moved(step) - moved(-step)) / (2 * step), squares, squares, 1e-4);
}

bool columns_are_right(const Pairs& p) {
  const Potential at(p);
  bool ok = true;
  for (int64_t j : {int64_t{0}, p.m / 2, p.m - 1}) {
    const double want = at.column_lse(p, j);
    ok &= close(static_cast<double>(p.col_lse[static_cast<size_t>(j)]), want, std::abs(want) + 1);
  }
  return ok;
}

// -- ops -------------------------------------------------------------------------------------------------

using Run = void (Pairs::*)(Context&);

void add_op(Suite& suite, const char* kind, int64_t n, int64_t m, const Work& work, Run run, Loss loss) {
  const std::string name =
      "op/transport/" + std::string(kind) + "/" + std::to_string(n) + "x" + std::to_string(m);
  add(name, [&suite, n, m, work, run, loss](benchmark::State& state) {
    Pairs pairs(n, m);
    (pairs.*run)(suite.ctx);
    if (!is_right(pairs, loss)) return fail(state, "the result is wrong");
    time_iterations(state, suite.ctx, suite.machine, work, [&] { (pairs.*run)(suite.ctx); });
  });
}

// The whole objective: the column lse of all pairs, and the Bellman term over all transitions.
void add_objective(Suite& suite, int64_t n, int64_t m) {
  Work work = pair_work(n, m, true);
  work.exp += static_cast<double>(n);
  add("op/objective/" + std::to_string(n) + "x" + std::to_string(m),
      [&suite, n, m, work](benchmark::State& state) {
        Pairs pairs(n, m);
        const auto size = static_cast<size_t>(n);
        const std::vector<float> v = random_values(n, 1, 6), u = random_values(n, 1, 7),
                                 discount(size, 0.998f), init(1, 0.f);
        std::vector<float> d_v(size), d_next(size), d_u(size), d_init(1);
        float loss = 0;
        const auto evaluate = [&] {
          pairs.columns(suite.ctx);
          bellman(suite.ctx, {{v.data(), n},
                              {v.data(), n},
                              {u.data(), n},
                              {discount.data(), n},
                              {init.data(), 1},
                              0.002f,
                              kEps,
                              Divergence::Kl,
                              {&loss, 1},
                              {d_v.data(), n},
                              {d_next.data(), n},
                              {d_u.data(), n},
                              {d_init.data(), 1}});
        };
        evaluate();
        double sum = 0;
        for (size_t i = 0; i < size; ++i) {
          const double flow =
              static_cast<double>(v[i]) * (1 - static_cast<double>(discount[i])) - static_cast<double>(u[i]);
          sum += std::exp(flow / static_cast<double>(kEps)) / static_cast<double>(n);
        }
        const double want = static_cast<double>(kEps) * std::log(sum);
        if (!columns_are_right(pairs) || !close(static_cast<double>(loss), want, std::abs(want) + 1)) {
          return fail(state, "the objective is wrong");
        }
        time_iterations(state, suite.ctx, suite.machine, work, evaluate);
        state.counters["scratch_MiB"] =
            static_cast<double>(column_lse_scratch_bytes(suite.ctx, n, m, kFeatures)) / (1 << 20);
      });
}

// -- steps -----------------------------------------------------------------------------------------------

struct Dual {
  std::string name;
  DualMethod method;
  int64_t batch, experts;
};

PotentialsOptions step_options(const Dual& dual) {
  PotentialsOptions options;
  options.method = dual.method;
  options.batch = dual.batch, options.expert_batch = dual.experts, options.init_batch = 1024;
  options.shared = false;
  return options;
}

constexpr int64_t kExpertStates = 1000;  // of the paper's one trajectory

// No expert state needs to pass through the network twice.
Work step_work(const Dual& d) {
  const int64_t rows = 3 * d.batch + std::min(2 * d.experts, kExpertStates) + 1024;
  const bool paired = d.method == DualMethod::Paired;
  Work work = paired ? Work{0, static_cast<double>(d.batch)} : pair_work(d.batch, d.experts, true);
  work.flop += mlp_flop(rows, kStateDim, Potentials::kWidth, 3);
  work.exp += static_cast<double>(d.batch);
  return work;
}

void add_step(Suite& suite, const Dual& dual) {
  add(dual.name, [&suite, dual](benchmark::State& state) {
    Context& ctx = suite.ctx;
    {
      constexpr float kReward = 0.75f;
      const DataTables one = make_tables(ctx, 16, 2, 1);
      const std::vector<float> g(17 * kFeatures, 0.1f), reward(17, kReward);
      Potentials net(ctx, one, {{g.data(), 17, kFeatures}, {g.data(), 2, kFeatures}, {reward.data(), 17}},
                     step_options(dual), 7);
      net.step(ctx);
      if (!close(static_cast<double>(net.optimiser().report(ctx).loss), static_cast<double>(kReward), 1)) {
        return fail(state, "the loss is wrong");
      }
    }
    const int64_t rows = 4 * dual.batch, experts = kExpertStates;
    const DataTables data = make_tables(ctx, rows, experts, rows);
    const std::vector<float> g = random_embeddings(rows + 1, 8), e = random_embeddings(experts, 9),
                             reward = random_values(rows + 1, 1, 10);
    Potentials net(
        ctx, data,
        {{g.data(), rows + 1, kFeatures}, {e.data(), experts, kFeatures}, {reward.data(), rows + 1}},
        step_options(dual), 7);
    time_iterations(state, suite.ctx, suite.machine, step_work(dual), [&] { net.step(ctx); });
  });
}

}  // namespace

void register_transport(Suite& suite) {
  add_step(suite, {"step/dual_paired/1024", DualMethod::Paired, 1024, 1024});
  add_step(suite, {"step/dual_all_pairs/1024x1024", DualMethod::Joint, 1024, 1024});
  add_step(suite, {"step/dual_all_pairs/4096x1000", DualMethod::Joint, 4096, 1000});
  for (auto [n, m] : {std::pair<int64_t, int64_t>{1024, 1024}, {4096, 1000}}) {
    add_op(suite, "joint", n, m, pair_work(n, m, true), &Pairs::joint, joint_loss);
    add_op(suite, "semidual", n, m, pair_work(n, m, true), &Pairs::semidual, semidual_loss);
    add_op(suite, "chi2", n, m, pair_work(n, m, false), &Pairs::chi2, chi2_loss);
  }
  add_op(suite, "paired", 1024, 1024, {3.0 * 1024 * kFeatures, 1024}, &Pairs::paired, paired_loss);
  add_objective(suite, 1200000, 1000);
}

}  // namespace pwdice::bench
