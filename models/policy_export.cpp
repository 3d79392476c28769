// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// A trained actor as a policy of raw observations.
//   state = ((D observation | flag) - mean) / scale        first layer: W state + b
// Without distortion and flag the file keeps mean and scale as they are. Otherwise everything linear before the
// first activation becomes one layer: W' = W diag(1/scale) (D | 0), b' = b - W diag(1/scale) mean. The expert's units,
// where the actor uses them, are folded into the first layer in the same way.
#include "../host/tensor.h"
#include "policy.h"

namespace pwdice {
namespace {

PolicyData::Layer copy_layer(Context& ctx, const Linear& layer, bool average, int64_t rows) {
  const auto matrix = [&](Param p) { return average ? p.average() : Mat<const float>(p.value()); };
  const Mat<const float> w = matrix(layer.w), b = matrix(layer.b);
  return {static_cast<int>(rows), static_cast<int>(w.cols), download(ctx, Vec<const float>{w.data, rows * w.cols}),
          download(ctx, Vec<const float>{b.data, rows})};
}

void fold_state_map(PolicyData::Layer& layer, const StateMap& map) {
  const int64_t d = map.observation_dim();
  PolicyData::Layer folded{layer.rows, static_cast<int>(d), {}, layer.bias};
  folded.weight.assign(static_cast<size_t>(layer.rows) * static_cast<size_t>(d), 0.f);
  for (int64_t o = 0; o < layer.rows; ++o) {
    std::vector<double> row(static_cast<size_t>(d), 0.0);
    double bias = layer.bias[o];
    for (int64_t k = 0; k < layer.cols; ++k) {
      const double w = static_cast<double>(layer.weight[o * layer.cols + k]) / map.normalizer.scale[k];
      bias -= w * map.normalizer.mean[k];
      if (k >= d) continue;  // the absorbing flag, 0 for every real observation
      for (int64_t j = 0; j < d; ++j) row[j] += w * (map.distortion.enabled() ? map.distortion.matrix[k * d + j] : (k == j));
    }
    for (int64_t j = 0; j < d; ++j) folded.weight[o * d + j] = static_cast<float>(row[j]);
    folded.bias[o] = static_cast<float>(bias);
  }
  layer = std::move(folded);
}

// W' = W diag(1/scale), b' = b - W' mean
void fold_units(PolicyData::Layer& layer, const Normalizer& units) {
  const auto cols = static_cast<size_t>(layer.cols);
  for (size_t o = 0; o < static_cast<size_t>(layer.rows); ++o) {
    double bias = layer.bias[o];
    for (size_t k = 0; k < cols; ++k) {
      const double w = static_cast<double>(layer.weight[o * cols + k]) / units.scale[k];
      layer.weight[o * cols + k] = static_cast<float>(w);
      bias -= w * units.mean[k];
    }
    layer.bias[o] = static_cast<float>(bias);
  }
}

}  // namespace

PolicyData Actor::export_policy(Context& ctx, const std::string& env_id) const {
  PolicyData data;
  data.env_id = env_id;
  const auto layers = net_.layers();
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool last = i + 1 == layers.size();  // the mean is the first half of the head
    data.layers.push_back(copy_layer(ctx, layers[i], params_.has_average(), last ? data_.action_dim() : layers[i].out()));
  }
  if (options_.expert_units) fold_units(data.layers.front(), units_);
  const StateMap& map = data_.state_map();
  if (map.distortion.enabled() || map.absorbing) {
    fold_state_map(data.layers.front(), map);
    data.obs_mean.assign(static_cast<size_t>(map.observation_dim()), 0.f);
    data.obs_std.assign(static_cast<size_t>(map.observation_dim()), 1.f);
  } else {
    data.obs_mean = map.normalizer.mean;
    data.obs_std = map.normalizer.scale;
  }
  data.action_scale.assign(static_cast<size_t>(data_.action_dim()), 1.f);
  data.action_bias.assign(static_cast<size_t>(data_.action_dim()), 0.f);
  return data;
}

}  // namespace pwdice
