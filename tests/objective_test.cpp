// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// The exact dual objective, streamed over the data in parts, against double loops over all pairs.
#include "small_run.h"

namespace pwdice::test {
namespace {

// The terms of one trained run in double.
class ExactObjective {
 public:
  ExactObjective(Trained& trained, const Config& config)
      : config_(config),
        data_(trained.trainer.data()),
        smodice_(config.method == "smodice"),
        semidual_(!smodice_ && config.transport == "semidual"),
        net_(reference_network(trained, "potentials", {4, 256, 256, smodice_ ? 1 : semidual_ ? 2 : 3})) {
    const Network discriminator = reference_network(trained, "discriminator", {4, 256, 256, 1}, /*tanh=*/true);
    const double a = config.discriminator.mixing;
    for (int64_t i = 0; i < data_.states().rows; ++i) {
      heads_.push_back(net_(data_.states().row(i)));
      reward_.push_back(config.cost.reward * (discriminator(data_.states().row(i))[0] - std::log1p(-a * a)));
    }
  }

  double value() const { return bellman() + (smodice_ ? 0 : transport()); }

 private:
  bool kl() const { return config_.divergence == "kl"; }
  double conjugate(double y) const {
    if (config_.divergence == "chi2") return (y + 1) * (y + 1) / 2;
    return std::pow(std::max(0.0, y + 1), 2) / 2 - 0.5;
  }
  double bellman() const {
    const auto n = static_cast<double>(data_.transitions());
    const double eps = smodice_ ? 1 : config_.eps2;
    double sum = 0, init = 0;
    for (int64_t i = 0; i < data_.transitions(); ++i) {
      const auto k = static_cast<size_t>(i);
      const double u = smodice_ ? -reward_[k] : heads_[k][1];
      const double y = (heads_[k][0] - data_.discount()[i] * heads_[static_cast<size_t>(data_.next()[i])][0] - u) / eps;
      sum += (kl() ? std::exp(y) : conjugate(y)) / n;
    }
    const Mat<const float> starts = data_.initial_states();
    for (int64_t k = 0; k < starts.rows; ++k) init += net_(starts.row(k))[0] / static_cast<double>(starts.rows);
    return eps * (kl() ? std::log(sum) : sum) - (1 - config_.gamma) * init;
  }
  // c = beta |s - t|^2 - R(s)
  double cost(int64_t i, int64_t j) const {
    double squares = 0;
    for (int64_t k = 0; k < 4; ++k) squares += std::pow(data_.states()(i, k) - data_.expert_states()(j, k), 2);
    return config_.cost.beta * squares - reward_[static_cast<size_t>(i)];
  }
  double transport() const {
    double total = 0, logs = 0, linear = 0;
    for (int64_t j = 0; j < data_.expert_states().rows; ++j) {
      const double q = data_.expert_weight()[j], b = semidual_ ? 0 : net_(data_.expert_states().row(j))[2];
      double column = 0;
      for (int64_t i = 0; i < data_.transitions(); ++i) {
        const double y = (heads_[static_cast<size_t>(i)][1] + b - cost(i, j)) / config_.eps1;
        column += (kl() ? std::exp(y) : conjugate(y)) / static_cast<double>(data_.transitions());
      }
      total += q * column, logs += q * std::log(column), linear += q * b;
    }
    return config_.eps1 * (semidual_ ? logs : kl() ? std::log(total) : total) - linear;
  }

  const Config& config_;
  const DataTables& data_;
  bool smodice_, semidual_;
  Network net_;
  std::vector<std::vector<double>> heads_;
  std::vector<double> reward_;
};

TEST(Objective, IsThatOfAllPairsInPartsOfAnySize) {
  using Settings = std::vector<std::pair<const char*, const char*>>;
  for (const Settings& settings : {Settings{{"transport", "semidual"}},
                                   {{"transport", "semidual"}, {"cost.reward", "0.0"}},
                                   {{"transport", "joint"}},
                                   {{"transport", "joint"}, {"divergence", "chi2"}},
                                   {{"transport", "joint"}, {"divergence", "chi2_exact"}},
                                   {{"transport", "paired"}, {"divergence", "chi2_exact"}},
                                   {{"method", "smodice"}},
                                   {{"method", "smodice"}, {"divergence", "chi2"}}}) {
    Settings all = settings;
    all.emplace_back("cost.distance", "squared_euclidean");
    const Config config = small_config(all);
    SCOPED_TRACE(config.method + ", " + config.transport + ", " + config.divergence);
    Trained t(config);
    const int64_t n = t.trainer.data().transitions();
    ASSERT_GT(n, 3 * 400);
    ASSERT_TRUE(t.trainer.has_objective());
    const double want = ExactObjective(t, config).value();
    // One part; several, the last of them short; a last part of one transition.
    for (const int64_t part : {Potentials::kPartRows, int64_t{400}, n - 1}) {
      EXPECT_NEAR(t.trainer.objective(t.ctx, part), want, 2e-5 * (1 + std::abs(want))) << part << " a part";
    }
  }
}

TEST(Objective, RefusesPartsOfNothing) {
  Trained t(small_config());
  expect_error(ErrorCode::InvalidArgument, "potentials: 0 transitions a part, expected at least 1",
               [&] { t.trainer.objective(t.ctx, 0); });
}

}  // namespace
}  // namespace pwdice::test
