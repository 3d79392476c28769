// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "policy_runtime.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace pwdice {
namespace {

constexpr int kVector = 16;  // floats; a multiple of every SIMD width in use

// Several versions of one function in the binary, chosen when it is loaded.
#if defined(__x86_64__) && defined(__ELF__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && \
    !(defined(__clang__) && __clang_major__ < 15)
#define PWDICE_POLICY_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PWDICE_POLICY_CLONES
#endif

// y = b + W x with W stored by input: a row of outputs is a run of independent sums, which vectorises without
// changing the order of any of them.
PWDICE_POLICY_CLONES void affine(const float* __restrict weight, const float* __restrict bias,
                                 const float* __restrict x, int inputs, int padded, float* __restrict y) {
  std::copy(bias, bias + padded, y);
  int i = 0;
  for (; i + 4 <= inputs; i += 4) {  // four inputs per pass: a quarter of the loads and stores of y
    const float* w = weight + static_cast<size_t>(i) * padded;
    const float x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
    for (int o = 0; o < padded; ++o) {
      y[o] += (w[o] * x0 + w[o + padded] * x1) + (w[o + 2 * padded] * x2 + w[o + 3 * padded] * x3);
    }
  }
  for (; i < inputs; ++i) {
    const float* w = weight + static_cast<size_t>(i) * padded;
    for (int o = 0; o < padded; ++o) y[o] += w[o] * x[i];
  }
}

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

std::string layer_defect(const PolicyData::Layer& layer, size_t index, int width) {
  const std::string name = "layer " + std::to_string(index);
  if (layer.rows < 1 || layer.cols != width) {
    return name + " is " + std::to_string(layer.rows) + " x " + std::to_string(layer.cols) + ", its input has " +
           std::to_string(width);
  }
  if (layer.weight.size() != static_cast<size_t>(layer.rows) * static_cast<size_t>(layer.cols) ||
      layer.bias.size() != static_cast<size_t>(layer.rows)) {
    return name + ": weight or bias has the wrong number of values";
  }
  if (!all_finite(layer.weight) || !all_finite(layer.bias)) return name + " has values that are not finite";
  return {};
}

}  // namespace

const char* describe(ActStatus status) noexcept {
  switch (status) {
    case ActStatus::Ok: return "ok";
    case ActStatus::WrongSize: return "observation or action has the wrong length";
    case ActStatus::NotFinite: return "observation or action is not finite";
  }
  return "unknown";
}

std::string find_defect(const PolicyData& data) {
  if (data.layers.empty()) return "the policy has no layers";
  if (data.obs_mean.empty() || data.obs_mean.size() != data.obs_std.size()) {
    return "obs_mean has " + std::to_string(data.obs_mean.size()) + " values, obs_std " +
           std::to_string(data.obs_std.size());
  }
  if (!all_finite(data.obs_mean) || !all_finite(data.obs_std)) return "obs_mean or obs_std is not finite";
  for (float s : data.obs_std) {
    if (s <= 0.f) return "obs_std holds " + std::to_string(s) + ", expected positive values";
  }
  int width = static_cast<int>(data.obs_mean.size());
  for (size_t i = 0; i < data.layers.size(); ++i) {
    if (std::string defect = layer_defect(data.layers[i], i, width); !defect.empty()) return defect;
    width = data.layers[i].rows;
  }
  if (data.action_scale.size() != static_cast<size_t>(width) || data.action_bias.size() != data.action_scale.size()) {
    return "action_scale or action_bias is not of length " + std::to_string(width);
  }
  if (!all_finite(data.action_scale) || !all_finite(data.action_bias)) return "action_scale or action_bias is not finite";
  return {};
}

PolicyRuntime::PolicyRuntime(const PolicyData& data) : activation_(data.activation) {
  if (const std::string defect = find_defect(data); !defect.empty()) throw std::invalid_argument("policy: " + defect);
  observation_size_ = static_cast<int>(data.obs_mean.size());
  action_size_ = data.layers.back().rows;
  size_t widest = data.obs_mean.size();
  for (const auto& source : data.layers) {
    const int padded = (source.rows + kVector - 1) / kVector * kVector;
    Layer layer{source.cols, source.rows, padded, {}, {}};
    layer.weight.assign(static_cast<size_t>(source.cols) * static_cast<size_t>(padded), 0.f);
    layer.bias.assign(static_cast<size_t>(padded), 0.f);
    for (int o = 0; o < source.rows; ++o) {
      layer.bias[static_cast<size_t>(o)] = source.bias[static_cast<size_t>(o)];
      for (int i = 0; i < source.cols; ++i) {
        layer.weight[static_cast<size_t>(i) * padded + o] = source.weight[static_cast<size_t>(o) * source.cols + i];
      }
    }
    widest = std::max(widest, static_cast<size_t>(padded));
    layers_.push_back(std::move(layer));
  }
  mean_ = data.obs_mean;
  for (float s : data.obs_std) inv_std_.push_back(1.f / s);
  scale_ = data.action_scale;
  shift_ = data.action_bias;
  in_.assign(widest, 0.f);
  out_.assign(widest, 0.f);
}

ActStatus PolicyRuntime::act(const float* observation, size_t observation_size, float* action,
                             size_t action_size) noexcept {
  if (observation_size != mean_.size() || action_size != scale_.size()) return ActStatus::WrongSize;
  for (size_t k = 0; k < observation_size; ++k) {
    if (!std::isfinite(observation[k])) return ActStatus::NotFinite;
    in_[k] = (observation[k] - mean_[k]) * inv_std_[k];
  }
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    affine(layer.weight.data(), layer.bias.data(), in_.data(), layer.inputs, layer.padded, out_.data());
    if (l + 1 < layers_.size()) {
      if (activation_ == PolicyActivation::Relu) {
        for (int o = 0; o < layer.outputs; ++o) out_[o] = out_[o] > 0.f ? out_[o] : 0.f;
      } else {
        for (int o = 0; o < layer.outputs; ++o) out_[o] = std::tanh(out_[o]);
      }
    }
    in_.swap(out_);
  }
  for (size_t k = 0; k < action_size; ++k) {
    out_[k] = scale_[k] * std::tanh(in_[k]) + shift_[k];
    if (!std::isfinite(out_[k])) return ActStatus::NotFinite;
  }
  std::copy(out_.data(), out_.data() + action_size, action);
  return ActStatus::Ok;
}

}  // namespace pwdice
