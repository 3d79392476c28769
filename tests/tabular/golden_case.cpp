// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "golden_case.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "../../kernels/error.h"

namespace pwdice::tabular {

std::vector<double> flatten(const nlohmann::json& array) {
  if (array.is_number()) return {array.get<double>()};
  std::vector<double> out;
  for (const auto& element : array) {
    const auto part = flatten(element);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    const double difference = std::abs(a[k] - b[k]);
    worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(worst, difference);
  }
  return worst;
}

namespace {

std::vector<std::string> json_files(const std::filesystem::path& directory) {
  std::vector<std::string> files;
  std::error_code none;  // a directory that is not there holds no files
  for (const auto& entry : std::filesystem::directory_iterator(directory, none))
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<std::string> golden_files() { return json_files(PWDICE_TEST_GOLDEN_DIR); }

std::vector<std::string> given_golden_files() {
  const char* given = std::getenv("PWDICE_GOLDEN_DIR");
  if (!given || !*given) return {};
  if (!std::filesystem::exists(given)) return {given};  // loading it will say so
  return json_files(std::filesystem::path(given) / "tabular");
}

RegOptions GoldenCase::reg_options(UConvention convention) const {
  return {.eps1 = parameter("eps1"),
          .eps2 = parameter("eps2"),
          .convention = convention,
          .floor_u = parameter("floor_U_as_run"),
          .floor_w = parameter("floor_dI_as_run")};
}

namespace {

GoldenCase parse_golden(std::istream& file) {
  GoldenCase c;
  c.json = nlohmann::json::parse(file);
  const int n = c.json.at("n_states"), m = c.json.at("n_actions");
  c.mdp.transitions = TransitionModel::from_dense(n, m, flatten(c.json.at("T_true")));
  c.mdp.p0 = flatten(c.json.at("p0"));
  c.mdp.gamma = c.json.at("gamma");
  c.mdp.goal = c.json.at("goal");
  c.expert_policy = flatten(c.json.at("expert_policy"));
  const auto states = c.json.at("expert_states").get<std::vector<int>>();
  for (size_t t = 0; t + 1 < states.size(); ++t) c.expert.push_back({states[t], 0, states[t + 1]});
  for (const auto& row : c.json.at("agnostic_transitions")) c.agnostic.push_back({row[0], row[1], row[2]});
  c.problem =
      estimate_problem(c.agnostic, c.expert, m, c.mdp.p0, {.gamma = c.mdp.gamma, .expert_pairs = true});
  c.problem.cost = {flatten(c.input("cost")), static_cast<size_t>(n)};
  return c;
}

}  // namespace

GoldenCase load_golden(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    fail(ErrorCode::BadFile, "golden case {}: there is no such file", path);
  try {
    return parse_golden(file);
  } catch (const std::exception& error) {  // of the JSON library or ours
    fail(ErrorCode::BadFile, "golden case {}: {}", path, error.what());
  }
}

RandomCase random_case(uint32_t seed, int n_states, int expert_size, int agnostic_size, double eta) {
  LegacyRandom random(seed);
  RandomCase c;
  c.instance = draw_instance({.n_states = n_states, .eta = eta}, expert_size, agnostic_size, random);
  c.problem = estimate_problem(c.instance.agnostic, c.instance.deterministic_expert,
                               c.instance.mdp.n_actions(), c.instance.mdp.p0, {});
  return c;
}

}  // namespace pwdice::tabular
