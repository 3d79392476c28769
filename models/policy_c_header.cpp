// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <algorithm>
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

// C99, without state, libm alone: the layers in turns through two arrays of the widest one.
std::string act_function(const PolicyData& data, const std::string& name, const std::string& upper) {
  size_t width = data.obs_mean.size();
  for (const PolicyData::Layer& layer : data.layers) width = std::max(width, static_cast<size_t>(layer.rows));
  const bool relu = data.activation == PolicyActivation::Relu;
  const std::string size = std::to_string(width);
  std::string out = "\nstatic inline void " + name + "_layer(const float* weight, const float* bias, int inputs, int outputs, const float* x,\n";
  out += "    float* y) {\n  for (int i = 0; i < outputs; ++i) {\n    float sum = bias[i];\n";
  out += "    for (int j = 0; j < inputs; ++j) sum += weight[i * inputs + j] * x[j];\n    y[i] = sum;\n  }\n}\n\n";
  out += "/* 0, or -1 when the observation or the action would not be finite; then the action is not written. */\n";
  out += "static inline int " + name + "_act(const float* observation, float* action) {\n";
  out += "  float x[" + size + "], y[" + size + "];\n";
  out += "  for (int i = 0; i < " + upper + "_OBSERVATION_SIZE; ++i) {\n    if (!isfinite(observation[i])) return -1;\n";
  out += "    x[i] = (observation[i] - " + name + "_obs_mean[i]) / " + name + "_obs_std[i];\n  }\n";
  for (size_t i = 0; i < data.layers.size(); ++i) {
    const std::string layer = name + "_layer" + std::to_string(i);
    out += "  " + name + "_layer(" + layer + "_weight, " + layer + "_bias, " + std::to_string(data.layers[i].cols) + ", " +
           std::to_string(data.layers[i].rows) + ", x, y);\n";
    const bool last = i + 1 == data.layers.size();
    if (last) break;
    out += "  for (int i = 0; i < " + std::to_string(data.layers[i].rows) + "; ++i) x[i] = " +
           (relu ? "y[i] < 0 ? 0 : y[i]" : "tanhf(y[i])") + ";\n";  // a NaN stays one
  }
  out += "  for (int i = 0; i < " + upper + "_ACTION_SIZE; ++i) {\n    if (!isfinite(y[i])) return -1;\n  }\n";
  out += "  for (int i = 0; i < " + upper + "_ACTION_SIZE; ++i) action[i] = " + name + "_action_scale[i] * tanhf(y[i]) + " + name +
         "_action_bias[i];\n  return 0;\n}\n";
  return out;
}

bool is_identifier(const std::string& name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

std::string policy_c_header(const PolicyData& data, const std::string& name) {
  if (const std::string defect = find_defect(data); !defect.empty()) throw std::invalid_argument("policy: " + defect);
  if (!is_identifier(name)) throw std::invalid_argument("policy: \"" + name + "\" is not a name in C");
  std::string upper = name;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const bool relu = data.activation == PolicyActivation::Relu;

  std::string task;  // as a file says it, so nothing that could end the comment
  for (const char c : data.env_id) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.') task += c;
  }
  std::string out = "/* A policy exported by pwdice" + (task.empty() ? "" : " for " + task) + ".\n";
  out += "   x = (observation - obs_mean) / obs_std\n";
  out += std::string("   x = ") + (relu ? "max(0, W_i x + b_i)" : "tanh(W_i x + b_i)") + " for every layer but the last\n";
  out += "   action = action_scale * tanh(W x + b) + action_bias        W_i is outputs x inputs, row-major */\n";
  out += "#ifndef " + upper + "_H\n#define " + upper + "_H\n\n#include <math.h>\n\n";
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
  return out + act_function(data, name, upper) + "\n#endif\n";
}

}  // namespace pwdice
