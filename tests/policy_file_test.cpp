// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../models/policy_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "../kernels/error.h"

namespace pwdice {
namespace {

namespace fs = std::filesystem;

class PolicyFileTest : public ::testing::Test {
 protected:
  void SetUp() override { path_ = fs::temp_directory_path() / ("pwdice_policy_" + std::to_string(::getpid()) + ".h5"); }
  void TearDown() override { fs::remove(path_); }

  static PolicyData sample() {
    PolicyData data;
    data.env_id = "Hopper-v4";
    data.layers = {{2, 3, {1, 2, 3, 4, 5, 6}, {0.5f, -0.5f}}, {1, 2, {0.1f, -0.2f}, {0.3f}}};
    data.obs_mean = {0, 1, 2}, data.obs_std = {1, 2, 3};
    data.action_scale = {1}, data.action_bias = {0};
    return data;
  }
  static PolicyCheck check_of(const PolicyData& data) {
    PolicyCheck check{{1, 2, 3, -1, 0, 1}, {0, 0}};
    PolicyRuntime runtime(data);
    for (size_t i = 0; i < 2; ++i) runtime.act(check.observations.data() + 3 * i, 3, check.actions.data() + i, 1);
    return check;
  }
  fs::path path_;
};

std::string message_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(PolicyFileTest, ComesBackAsItWas) {
  const PolicyData data = sample();
  save_policy(path_, data, check_of(data));
  PolicyCheck check;
  const PolicyData back = load_policy(path_, &check);
  EXPECT_EQ(back.env_id, "Hopper-v4");
  EXPECT_EQ(back.layers[0].weight, data.layers[0].weight);
  EXPECT_EQ(back.obs_std, data.obs_std);
  EXPECT_EQ(policy_checksum(back), policy_checksum(data));
  EXPECT_EQ(replay(back, check), 0.f);
}

TEST_F(PolicyFileTest, ReplayNoticesAnotherPolicy) {
  PolicyData data = sample();
  const PolicyCheck check = check_of(data);
  data.layers[1].bias[0] = 0.4f;
  EXPECT_GT(replay(data, check), 0.01f);
}

TEST_F(PolicyFileTest, ChecksumNoticesAChangedWeight) {
  save_policy(path_, sample());
  const PolicyData data = sample();
  Hdf5Writer file(path_);
  file.group("policy");
  file.attribute("policy", "activation", "relu");
  file.attribute("policy", "checksum", static_cast<int64_t>(policy_checksum(data) + 1));
  for (int i = 0; i < 2; ++i) {
    const auto& layer = data.layers[static_cast<size_t>(i)];
    const std::string group = "policy/layers/" + std::to_string(i);
    file.write<float>(group + "/weight", layer.weight, std::vector<int64_t>{layer.rows, layer.cols});
    file.write<float>(group + "/bias", layer.bias, std::vector<int64_t>{layer.rows});
  }
  for (const auto& [name, values] : {std::pair{"obs_mean", data.obs_mean}, std::pair{"obs_std", data.obs_std},
                                     std::pair{"action_scale", data.action_scale}, std::pair{"action_bias", data.action_bias}}) {
    file.write<float>(std::string("policy/") + name, values, std::vector<int64_t>{static_cast<int64_t>(values.size())});
  }
  file.commit();
  EXPECT_NE(message_of([&] { load_policy(path_); }).find("checksum does not match"), std::string::npos);
}

TEST_F(PolicyFileTest, WhatIsNotAPolicyIsRefused) {
  {
    Hdf5Writer file(path_);
    file.group("model");
    file.commit();
  }
  EXPECT_NE(message_of([&] { load_policy(path_); }).find("no group /policy"), std::string::npos);
  PolicyData bad = sample();
  bad.layers[1].cols = 7;
  EXPECT_NE(message_of([&] { save_policy(path_, bad); }).find("not written"), std::string::npos);
}

}  // namespace
}  // namespace pwdice
