// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../../models/tabular/reg.h"

namespace pwdice::tabular {

// One file of tests/golden/tabular, with the estimators already run on its data.
struct GoldenCase {
  nlohmann::json json;
  Mdp mdp;
  Policy expert_policy;
  Trajectory expert, agnostic;
  Problem problem;

  const nlohmann::json& input(const char* field) const { return json.at("inputs").at(field); }
  const nlohmann::json& expected(const char* field) const { return json.at("expected").at(field); }
  double parameter(const char* field) const { return json.at("hyperparameters").at(field).get<double>(); }
  RegOptions reg_options(UConvention convention) const;
};

GoldenCase load_golden(const std::string& path);  // throws one sentence that names the file

std::vector<std::string> golden_files();        // of this repository
std::vector<std::string> given_golden_files();  // of $PWDICE_GOLDEN_DIR/tabular

std::vector<double> flatten(const nlohmann::json& array);
double largest_difference(const std::vector<double>& a, const std::vector<double>& b);

// A small random problem for tests that need no golden answer.
struct RandomCase {
  Instance instance;
  Problem problem;
};
RandomCase random_case(uint32_t seed, int n_states, int expert_size, int agnostic_size, double eta = 0.5);

}  // namespace pwdice::tabular
