// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "../kernels/mlp.h"
#include "params.h"
#include "tape.h"

namespace pwdice {

enum class WeightInit { PyTorch /* +-1/sqrt(in), bias too */, Xavier /* bias 0 */ };
enum class Weights { Current, Average };  // the trained values or their exponential moving average

// y = f(x W^T + b)
struct Linear {
  Param w, b;  // (out, in), (out, 1)
  Activation act = Activation::None;

  Linear(ParamStore& params, std::string_view name, int64_t in, int64_t out, Activation act,
         WeightInit init = WeightInit::PyTorch);
  int64_t in() const;
  int64_t out() const;
};

// Layers of the given sizes, {in, hidden..., out}: `hidden` between them, nothing after the last. Parameters
// are named <name>.<layer>.weight and <name>.<layer>.bias and lie one after another in the store.
class Mlp {
 public:
  static constexpr int64_t kMaxLayers = kMlpMaxLayers;

  Mlp(ParamStore& params, std::string_view name, std::span<const int64_t> sizes, Activation hidden,
      WeightInit init = WeightInit::PyTorch);
  Mlp(ParamStore& params, std::string_view name, std::initializer_list<int64_t> sizes, Activation hidden,
      WeightInit init = WeightInit::PyTorch)
      : Mlp(params, name, std::span(sizes.begin(), sizes.size()), hidden, init) {}

  std::span<const Linear> layers() const { return layers_; }
  int64_t in() const { return sizes_.front(); }
  int64_t out() const { return sizes_.back(); }
  std::span<const int64_t> sizes() const { return sizes_; }
  Activation hidden() const { return hidden_; }

  // y = net(x) without a tape, for tables over any number of rows: in chunks, hidden layers in the scratch.
  void predict(Context& ctx, Mat<const float> x, Mat<float> y, Weights weights = Weights::Current) const;
  static size_t predict_scratch_bytes(std::span<const int64_t> sizes);

 private:
  std::vector<int64_t> sizes_;
  std::vector<Linear> layers_;
  Activation hidden_;
};

// The network on the tape. mlp() is one fused node, first order, for training; mlp_composed() is made of
// small functions, so that its gradient can be differentiated. The net must outlive the step.
Tensor mlp(Tape& tape, const Tensor& x, const Mlp& net);
Tensor mlp_composed(Tape& tape, const Tensor& x, const Mlp& net);

// lambda/n sum_k (|grad_x D(x_k)| - 1)^2 for a net of two hidden layers and one output (gradient_penalty.h),
// fused. gradient_penalty_composed() is the same through tape.gradient(..., {.create_graph = true}), for any
// net; there a zero gradient gives NaN where the fused one gives 0.
Tensor gradient_penalty(Tape& tape, Mat<const float> x, const Mlp& net, float lambda);
Tensor gradient_penalty_composed(Tape& tape, Mat<const float> x, const Mlp& net, float lambda);

}  // namespace pwdice
