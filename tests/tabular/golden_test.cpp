// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
//
// Fixed instances with exact answers; the tolerances are those of tests/golden/tabular/README.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../../kernels/error.h"
#include "../../models/tabular/float32_dual.h"
#include "../../models/tabular/lobsdice.h"
#include "../../models/tabular/lp.h"
#include "../../models/tabular/metrics.h"
#include "../../models/tabular/smodice.h"
#include "golden_case.h"

namespace pwdice::tabular {
namespace {

class Golden : public testing::TestWithParam<std::string> {
 protected:
  GoldenCase c = load_golden(GetParam());

  void expect_metrics(const Policy& policy, const nlohmann::json& expected) const {
    const Metrics metrics = evaluate(c.mdp, c.expert_policy, policy);
    EXPECT_NEAR(metrics.regret, expected.at("regret").get<double>(), 1e-5);
    EXPECT_NEAR(metrics.tv_s, expected.at("tv_s").get<double>(), 1e-5);
    EXPECT_NEAR(metrics.tv_ss, expected.at("tv_ss").get<double>(), 1e-5);
  }

  void expect_policy(const Policy& policy, const nlohmann::json& expected) const {
    const auto wanted = flatten(expected.at("policy"));
    ASSERT_EQ(policy.size(), wanted.size());
    const size_t m = c.problem.n_actions();
    for (size_t row = 0; row < policy.size(); ++row) {
      const size_t s = row / m;
      if (expected.contains("states_to_compare")) {
        const auto& states = expected.at("states_to_compare");
        if (std::find(states.begin(), states.end(), s) == states.end()) continue;
      }
      EXPECT_NEAR(policy[row], wanted[row], 1e-5) << "state " << s << ", action " << row % m;
    }
  }
};

TEST_P(Golden, Estimators) {
  const auto behaviour = estimate_behaviour(c.agnostic, static_cast<int>(c.problem.n_states()),
                                            static_cast<int>(c.problem.n_actions()));
  EXPECT_LE(largest_difference(behaviour, flatten(c.input("pi_behaviour"))), 1e-12);
  std::vector<double> t_hat;
  for (int row = 0; row < c.problem.model.n_rows(); ++row) {
    const auto dense = c.problem.model.dense_row(row);
    t_hat.insert(t_hat.end(), dense.begin(), dense.end());
  }
  EXPECT_LE(largest_difference(t_hat, flatten(c.input("T_hat"))), 1e-12);
  EXPECT_LE(largest_difference(c.problem.agnostic_sa, flatten(c.input("dI_sa"))), 1e-12);
  EXPECT_LE(largest_difference(c.problem.expert_s, flatten(c.input("dE_s"))), 1e-12);
  EXPECT_LE(largest_difference(c.problem.expert_ss, flatten(c.input("dE_ss"))), 1e-12);
}

TEST_P(Golden, ExpertValueAtGoal) {
  const auto d =
      state_marginal(occupancy(c.mdp.transitions, c.mdp.p0, c.mdp.gamma, c.expert_policy), c.mdp.n_actions());
  EXPECT_NEAR(d[static_cast<size_t>(c.mdp.goal)], c.expected("expert_value_at_goal").get<double>(), 1e-12);
}

TEST_P(Golden, Lp) {
  const auto& expected = c.expected("lp");
  const LpSolution lp = solve_pwdice_lp(c.problem);
  EXPECT_NEAR(lp.objective, expected.at("objective").get<double>(), 1e-7);
  EXPECT_LE(lp.constraint_residual, 1e-8);
  // The argument is not unique in general: its regret counts only where all optima agree.
  if (expected.at("regret_is_unique").get<bool>()) {
    EXPECT_NEAR(evaluate(c.mdp, c.expert_policy, lp.policy).regret, expected.at("regret").get<double>(),
                1e-5);
  }
}

void expect_reg(const RegSolution& reg, const nlohmann::json& expected) {
  EXPECT_TRUE(reg.converged);
  EXPECT_NEAR(reg.objective, expected.at("objective").get<double>(), 1e-8);
  EXPECT_NEAR(reg.transport_cost, expected.at("transport_cost").get<double>(), 1e-8);
  EXPECT_LE(largest_difference(reg.d_s, flatten(expected.at("d_s_model"))), 1e-8);
  EXPECT_NEAR(reg.duality_gap, 0, 1e-10);
  EXPECT_LE(reg.constraint_residual, 1e-10);
}

TEST_P(Golden, RegAsRun) {
  const auto& expected = c.expected("reg_as_run");
  const RegSolution reg = solve_reg(c.problem, c.reg_options(UConvention::AsRun));
  expect_reg(reg, expected);
  expect_policy(reg.policy, expected);
  expect_metrics(reg.policy, expected);
}

TEST_P(Golden, RegPaper) {
  const auto& expected = c.expected("reg_paper");
  const RegOptions options = c.reg_options(UConvention::Paper);
  const RegSolution reg = solve_reg(c.problem, options);
  expect_reg(reg, expected);
  expect_policy(reg.policy, expected);
  expect_metrics(reg.policy, expected);
  EXPECT_NEAR(reg.dual_minimum, c.expected("reg_paper_dual_minimum").get<double>(), 1e-8);
  // The three-head loss of the paper takes the same value at the multipliers found, and its gradient vanishes
  // there.
  const DualLoss loss = dual_loss(c.problem, options, {reg.lambda_value, reg.lambda_pi, reg.lambda_expert});
  EXPECT_NEAR(loss.loss, reg.dual_minimum, 1e-10);
  const std::vector<double> zero(c.problem.n_states());
  EXPECT_LE(largest_difference(loss.gradient.lambda_value, zero), 1e-9);
  EXPECT_LE(largest_difference(loss.gradient.lambda_pi, zero), 1e-9);
  EXPECT_LE(largest_difference(loss.gradient.lambda_expert, zero), 1e-9);
}

TEST_P(Golden, DualProbe) {
  const auto& probe = c.expected("paper_dual_probe");
  const DualPoint point{flatten(probe.at("lambda_value")), flatten(probe.at("lambda_pi")),
                        flatten(probe.at("lambda_expert"))};
  const DualLoss loss = dual_loss(c.problem, c.reg_options(UConvention::Paper), point);
  EXPECT_NEAR(loss.loss, probe.at("loss").get<double>(), 1e-10);
  EXPECT_LE(largest_difference(loss.gradient.lambda_value, flatten(probe.at("grad_value"))), 1e-10);
  EXPECT_LE(largest_difference(loss.gradient.lambda_pi, flatten(probe.at("grad_pi"))), 1e-10);
  EXPECT_LE(largest_difference(loss.gradient.lambda_expert, flatten(probe.at("grad_expert"))), 1e-10);
}

TEST_P(Golden, Float32DualProbe) {
  const auto& probe = c.expected("paper_dual_probe");
  const DualPoint point{flatten(probe.at("lambda_value")), flatten(probe.at("lambda_pi")),
                        flatten(probe.at("lambda_expert"))};
  const DualLoss loss = float32_dual_loss(c.problem, c.reg_options(UConvention::Paper), point);
  EXPECT_NEAR(loss.loss, probe.at("loss").get<double>(), 1e-5);
  EXPECT_LE(largest_difference(loss.gradient.lambda_value, flatten(probe.at("grad_value"))), 1e-5);
  EXPECT_LE(largest_difference(loss.gradient.lambda_pi, flatten(probe.at("grad_pi"))), 1e-5);
  EXPECT_LE(largest_difference(loss.gradient.lambda_expert, flatten(probe.at("grad_expert"))), 1e-5);
}

// The loss trained through the float32 ops has the exact optimum: its multipliers are nearly optimal in
// float64.
TEST_P(Golden, Float32TrainingReachesTheOptimum) {
  const RegOptions options = c.reg_options(UConvention::Paper);
  const TrainedDual trained = train_float32_dual(c.problem, options);
  const double minimum = c.expected("reg_paper_dual_minimum").get<double>();
  EXPECT_NEAR(trained.loss, minimum, 1e-4);
  const double exact_loss = dual_loss(c.problem, options, trained.point).loss;
  EXPECT_GE(exact_loss, minimum - 1e-10);
  EXPECT_LE(exact_loss, minimum + 1e-4);
  const RegSolution reg = solve_reg(c.problem, options);
  const size_t m = c.problem.n_actions();
  for (size_t row = 0; row < reg.policy.size(); ++row) {
    if (reg.d_s[row / m] > 1e-2) {
      EXPECT_NEAR(trained.policy[row], reg.policy[row], 0.02) << "state " << row / m;
    }
  }
}

TEST_P(Golden, SmodiceKl) {
  const auto& expected = c.expected("smodice_kl");
  const SmodiceOptions options{c.parameter("smodice_delta"), c.parameter("smodice_floor_dI")};
  EXPECT_LE(largest_difference(smodice_reward(c.problem, options.delta), flatten(expected.at("reward"))),
            1e-10);
  const Solution solution = solve_smodice_kl(c.problem, options);
  EXPECT_NEAR(solution.objective, expected.at("objective").get<double>(), 1e-8);
  expect_policy(solution.policy, expected);
  expect_metrics(solution.policy, expected);
}

TEST_P(Golden, LobsdiceIntended) {
  const auto& expected = c.expected("lobsdice_intended");
  const Solution solution =
      solve_lobsdice(c.problem, {c.parameter("lobs_alpha_intended"), c.parameter("lobs_delta")});
  EXPECT_NEAR(solution.objective, expected.at("dual_minimum").get<double>(), 1e-8);
  expect_policy(solution.policy, expected);
  expect_metrics(solution.policy, expected);
}

TEST_P(Golden, LobsdiceAsRun) {
  const auto& expected = c.expected("lobsdice_as_run");
  const Solution solution =
      lobsdice_as_run(c.problem, {c.parameter("lobs_alpha_as_run"), c.parameter("lobs_delta")});
  expect_policy(solution.policy, expected);
  expect_metrics(solution.policy, expected);
}

std::string case_name(const testing::TestParamInfo<std::string>& file) {
  std::string name = std::filesystem::path(file.param).stem().string() + "_" + std::to_string(file.index);
  for (char& ch : name)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(golden_files()), case_name);
INSTANTIATE_TEST_SUITE_P(Given, Golden, testing::ValuesIn(given_golden_files()), case_name);

// What a damaged file of PWDICE_GOLDEN_DIR says.
TEST(GoldenFile, DamagedIsOneSentence) {
  const auto path = std::filesystem::path(testing::TempDir()) / "tabular_damaged.json";
  for (const char* text :
       {"", "{\"n_states\": 20", "{}", "{\"n_states\": 2, \"n_actions\": 1, \"T_true\": [1]}"}) {
    std::ofstream(path) << text;
    try {
      load_golden(path.string());
      ADD_FAILURE() << "no error for '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadFile);
      EXPECT_EQ(std::string(error.what()).find("golden case " + path.string() + ": "), 0u) << error.what();
    }
  }
  EXPECT_THROW(load_golden("/nowhere/case.json"), Error);
}

}  // namespace
}  // namespace pwdice::tabular
