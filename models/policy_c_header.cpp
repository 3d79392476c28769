// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cstdio>
#include <stdexcept>

#include "policy_runtime.h"

namespace pwdice {
namespace {

void array(std::string& out, const std::string& name, const std::vector<float>& values) {
  out += "static const float " + name + "[" + std::to_string(values.size()) + "] = {";
  char text[32];
  for (size_t i = 0; i < values.size(); ++i) {
    std::snprintf(text, sizeof text, "%s%.9g", i % 8 == 0 ? "\n    " : " ", static_cast<double>(values[i]));
    std::string literal = text;
    if (literal.find_first_of(".e") == std::string::npos) literal += ".0";
    out += literal + "f,";
  }
  out += "\n};\n";
}

void define(std::string& out, const std::string& name, size_t value) {
  out += "#define " + name + " " + std::to_string(value) + "\n";
}

}  // namespace

std::string policy_c_header(const PolicyData& data, const std::string& name) {
  if (const std::string defect = find_defect(data); !defect.empty()) throw std::invalid_argument("policy: " + defect);
  std::string upper = name;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const bool relu = data.activation == PolicyActivation::Relu;

  std::string out = "/* A policy exported by pwdice" + (data.env_id.empty() ? "" : " for " + data.env_id) + ".\n";
  out += "   x = (observation - obs_mean) / obs_std\n";
  out += std::string("   x = ") + (relu ? "max(0, W_i x + b_i)" : "tanh(W_i x + b_i)") + " for every layer but the last\n";
  out += "   action = action_scale * tanh(W x + b) + action_bias        W_i is outputs x inputs, row-major */\n";
  out += "#ifndef " + upper + "_H\n#define " + upper + "_H\n\n";
  define(out, upper + "_OBSERVATION_SIZE", data.obs_mean.size());
  define(out, upper + "_ACTION_SIZE", data.action_scale.size());
  define(out, upper + "_LAYERS", data.layers.size());
  define(out, upper + "_TANH_HIDDEN", relu ? 0 : 1);
  for (size_t i = 0; i < data.layers.size(); ++i) {
    const std::string prefix = name + "_layer" + std::to_string(i);
    define(out, upper + "_LAYER" + std::to_string(i) + "_OUTPUTS", static_cast<size_t>(data.layers[i].rows));
    array(out, prefix + "_weight", data.layers[i].weight);
    array(out, prefix + "_bias", data.layers[i].bias);
  }
  array(out, name + "_obs_mean", data.obs_mean);
  array(out, name + "_obs_std", data.obs_std);
  array(out, name + "_action_scale", data.action_scale);
  array(out, name + "_action_bias", data.action_bias);
  return out + "\n#endif\n";
}

}  // namespace pwdice
