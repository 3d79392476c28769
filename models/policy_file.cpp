// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "policy_file.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "../host/crc32.h"
#include "../kernels/error.h"

namespace pwdice {
namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kMaxBytes = int64_t{256} << 20;  // of one array: no policy is larger
constexpr int kMaxLayers = 64;

void write_matrix(Hdf5Writer& file, const std::string& path, const std::vector<float>& values, int64_t rows, int64_t cols) {
  const int64_t shape[] = {rows, cols};
  file.write<float>(path, values, shape);
}

void write_vector(Hdf5Writer& file, const std::string& path, const std::vector<float>& values) {
  const int64_t shape[] = {static_cast<int64_t>(values.size())};
  file.write<float>(path, values, shape);
}

PolicyData::Layer read_layer(const Hdf5Reader& file, const std::string& path) {
  const Hdf5Info info = file.info(path + "/weight");
  if (info.shape.size() != 2 || info.shape[0] < 1 || info.shape[0] > 1 << 20 || info.shape[1] < 1 || info.shape[1] > 1 << 20) {
    fail(ErrorCode::BadFile, "{}: {}/weight is not a matrix", file.name(), path);
  }
  return {static_cast<int>(info.shape[0]), static_cast<int>(info.shape[1]), file.read<float>(path + "/weight"),
          file.read<float>(path + "/bias")};
}

PolicyActivation read_activation(const Hdf5Reader& file) {
  const std::string name = file.string_attribute("policy", "activation");
  if (name == "relu") return PolicyActivation::Relu;
  if (name == "tanh") return PolicyActivation::Tanh;
  fail(ErrorCode::BadFile, "{}: activation is \"{}\", expected relu or tanh", file.name(), name);
}

void check_header(const Hdf5Reader& file) {
  if (!file.is_group("policy")) fail(ErrorCode::BadFile, "{}: not a policy file, it has no group /policy", file.name());
  if (file.has_attribute("policy", "version")) {
    const int64_t version = file.integer_attribute("policy", "version");
    if (version < 1 || version > kVersion) {
      fail(ErrorCode::BadFile, "{}: policy file of version {}, this program reads up to {}", file.name(), version, kVersion);
    }
  }
  const std::string output = file.has_attribute("policy", "output") ? file.string_attribute("policy", "output") : "tanh_mean";
  if (output != "tanh_mean") fail(ErrorCode::BadFile, "{}: output is \"{}\", expected tanh_mean", file.name(), output);
}

}  // namespace

uint32_t policy_checksum(const PolicyData& policy) {
  uint32_t crc = 0;
  const auto add = [&crc](const std::vector<float>& v) { crc = crc32_ieee(v.data(), v.size() * sizeof(float), crc); };
  for (const auto& layer : policy.layers) add(layer.weight), add(layer.bias);
  add(policy.obs_mean), add(policy.obs_std), add(policy.action_scale), add(policy.action_bias);
  return crc;
}

void save_policy(const std::filesystem::path& path, const PolicyData& policy, const PolicyCheck& check) {
  if (const std::string defect = find_defect(policy); !defect.empty()) {
    fail(ErrorCode::InvalidArgument, "{}: not written, {}", path.string(), defect);
  }
  Hdf5Writer file(path);
  file.group("policy");
  file.attribute("policy", "activation", policy.activation == PolicyActivation::Relu ? "relu" : "tanh");
  file.attribute("policy", "output", "tanh_mean");
  file.attribute("policy", "env_id", policy.env_id);
  file.attribute("policy", "version", kVersion);
  file.attribute("policy", "checksum", static_cast<int64_t>(policy_checksum(policy)));
  for (size_t i = 0; i < policy.layers.size(); ++i) {
    const auto& layer = policy.layers[i];
    const std::string group = "policy/layers/" + std::to_string(i);
    write_matrix(file, group + "/weight", layer.weight, layer.rows, layer.cols);
    write_vector(file, group + "/bias", layer.bias);
  }
  write_vector(file, "policy/obs_mean", policy.obs_mean);
  write_vector(file, "policy/obs_std", policy.obs_std);
  write_vector(file, "policy/action_scale", policy.action_scale);
  write_vector(file, "policy/action_bias", policy.action_bias);
  if (!check.observations.empty()) {
    const auto s = static_cast<int64_t>(policy.obs_mean.size()), a = static_cast<int64_t>(policy.action_scale.size());
    write_matrix(file, "policy/check/observations", check.observations, static_cast<int64_t>(check.observations.size()) / s, s);
    write_matrix(file, "policy/check/actions", check.actions, static_cast<int64_t>(check.actions.size()) / a, a);
  }
  file.commit();
}

PolicyData load_policy(const std::filesystem::path& path, PolicyCheck* check) {
  return load_policy(Hdf5Reader(path, Hdf5Limits{.max_bytes = kMaxBytes}), check);
}

PolicyData load_policy(const Hdf5Reader& file, PolicyCheck* check) {
  check_header(file);
  PolicyData policy;
  policy.activation = read_activation(file);
  if (file.has_attribute("policy", "env_id")) policy.env_id = file.string_attribute("policy", "env_id");
  const size_t layers = file.children("policy/layers").size();
  if (layers < 1 || layers > kMaxLayers) fail(ErrorCode::BadFile, "{}: {} layers", file.name(), layers);
  for (size_t i = 0; i < layers; ++i) policy.layers.push_back(read_layer(file, "policy/layers/" + std::to_string(i)));
  policy.obs_mean = file.read<float>("policy/obs_mean");
  policy.obs_std = file.read<float>("policy/obs_std");
  policy.action_scale = file.read<float>("policy/action_scale");
  policy.action_bias = file.read<float>("policy/action_bias");
  if (const std::string defect = find_defect(policy); !defect.empty()) fail(ErrorCode::BadFile, "{}: {}", file.name(), defect);
  if (file.has_attribute("policy", "checksum") &&
      file.integer_attribute("policy", "checksum") != static_cast<int64_t>(policy_checksum(policy))) {
    fail(ErrorCode::BadFile, "{}: damaged policy, the checksum does not match", file.name());
  }
  if (check != nullptr && file.has("policy/check/observations")) {
    check->observations = file.read<float>("policy/check/observations");
    check->actions = file.read<float>("policy/check/actions");
  }
  return policy;
}

float replay(const PolicyData& policy, const PolicyCheck& check) {
  PolicyRuntime runtime(policy);
  const size_t s = policy.obs_mean.size(), a = policy.action_scale.size(), rows = check.observations.size() / s;
  PWDICE_CHECK(rows > 0 && check.observations.size() == rows * s && check.actions.size() == rows * a,
               "replay: {} observation and {} action values do not fit a policy from {} to {}", check.observations.size(),
               check.actions.size(), s, a);
  std::vector<float> action(a);
  float worst = 0;
  for (size_t i = 0; i < rows; ++i) {
    const ActStatus status = runtime.act(check.observations.data() + i * s, s, action.data(), a);
    if (status != ActStatus::Ok) fail(ErrorCode::NotFinite, "replay: row {}: {}", i, describe(status));
    for (size_t k = 0; k < a; ++k) worst = std::max(worst, std::abs(action[k] - check.actions[i * a + k]));
  }
  return worst;
}

}  // namespace pwdice
