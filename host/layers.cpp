// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "layers.h"

#include <algorithm>
#include <array>
#include <string>

#include "../kernels/gradient_penalty.h"
#include "functions.h"

namespace pwdice {
namespace {

using Node = Tape::Node;

// Rows of a chunk of predict(): enough to keep the threads busy, few enough that two hidden layers stay in
// cache.
constexpr int64_t kPredictRows = 1024;

Vec<float> flat(Mat<float> m) { return {m.data, m.size()}; }
Vec<const float> flat(Mat<const float> m) { return {m.data, m.size()}; }

const ParamEntry& entry(const Param& param) {
  return param.store->entries()[static_cast<size_t>(param.index)];
}

struct MlpSaved {
  const Mlp* net;
  std::array<float*, Mlp::kMaxLayers> y;  // outputs of the layers
};

// Walks the layers from the last to the first. d is the gradient before a layer's activation: the derivative
// of the layer below is part of linear_backward_input, and the parameters' gradients go straight to their
// store. In the last sweep d takes the place of the activations it was computed from: half the memory to walk
// through.
void mlp_rule(Tape& tape, const Node& node, const Tensor& d_out) {
  tape.require_first_order("mlp");
  const auto saved = node.payload<MlpSaved>();
  const std::span<const Linear> layers = saved.net->layers();
  const Tensor& x = node.inputs[0];
  const int64_t n = x.rows();
  Mat<const float> d = d_out.view;
  for (size_t l = layers.size(); l-- > 0;) {
    const Linear& layer = layers[l];
    const Mat<const float> input = l == 0 ? x.view : Mat<const float>(saved.y[l - 1], n, layer.in());
    if (tape.wants_parameters()) {
      const ArenaScope scope(tape.arena());
      const Mat<float> d_w = layer.w.store->gradient_target(layer.w, tape.arena());
      const Mat<float> d_b = layer.b.store->gradient_target(layer.b, tape.arena());
      linear_backward_params(tape.context(), {d, input, d_w, flat(d_b)});
      layer.w.store->contribute(tape.context(), layer.w, d_w);
      layer.b.store->contribute(tape.context(), layer.b, d_b);
    }
    if (l == 0 && !tape.wants(x)) return;
    const bool in_place = l > 0 && tape.wants_parameters();
    const Mat<float> below =
        in_place ? Mat<float>(saved.y[l - 1], n, layer.in()) : tape.output(n, layer.in());
    const Activation act = l > 0 ? layers[l - 1].act : Activation::None;
    linear_backward_input(tape.context(), {d, layer.w.value(), input, act, below});
    d = below;
  }
  tape.contribute(x, tape.constant(d));
}

struct PenaltySaved {
  const Mlp* net;
  float lambda;
  Mat<const float> x, h1, h2, v1, g;
  Vec<const float> norm;
};

void gradient_penalty_rule(Tape& tape, const Node& node, const Tensor& d_loss) {
  tape.require_first_order("gradient_penalty");
  if (!tape.wants_parameters()) return;
  const auto s = node.payload<PenaltySaved>();
  const std::span<const Linear> layers = s.net->layers();
  const std::array<Param, 5> params = {layers[0].w, layers[0].b, layers[1].w, layers[1].b, layers[2].w};
  const ArenaScope scope(tape.arena());
  std::array<Mat<float>, 5> d;
  for (size_t k = 0; k < params.size(); ++k) d[k] = params[k].store->gradient_target(params[k], tape.arena());
  gradient_penalty_backward(
      tape.context(),
      {s.x, params[0].value(), params[2].value(), flat(params[4].value()), s.net->hidden(), s.lambda, s.h1,
       s.h2, s.v1, s.g, s.norm, d_loss.vec(), d[0], d[2], flat(d[1]), flat(d[3]), flat(d[4])});
  for (size_t k = 0; k < params.size(); ++k) params[k].store->contribute(tape.context(), params[k], d[k]);
}

Tensor activate(Tape& tape, const Tensor& x, Activation act) {
  switch (act) {
    case Activation::Relu:
      return relu(tape, x);
    case Activation::Tanh:
      return tanh(tape, x);
    case Activation::None:
      break;
  }
  return x;
}

}  // namespace

Linear::Linear(ParamStore& params, std::string_view name, int64_t in, int64_t out, Activation activation,
               WeightInit init)
    : act(activation) {
  const bool xavier = init == WeightInit::Xavier;
  const std::string prefix(name);
  w = params.add(prefix + ".weight", out, in, xavier ? Init::xavier(in, out) : Init::linear(in));
  b = params.add(prefix + ".bias", out, 1, xavier ? Init::zero() : Init::linear(in));
}

int64_t Linear::in() const { return entry(w).cols; }
int64_t Linear::out() const { return entry(w).rows; }

Mlp::Mlp(ParamStore& params, std::string_view name, std::span<const int64_t> sizes, Activation hidden,
         WeightInit init)
    : sizes_(sizes.begin(), sizes.end()), hidden_(hidden) {
  const int64_t layers = static_cast<int64_t>(sizes.size()) - 1;
  PWDICE_CHECK(layers >= 1 && layers <= kMaxLayers, "mlp {}: {} layers, expected 1 to {}", name, layers,
               kMaxLayers);
  for (int64_t l = 0; l < layers; ++l) {
    const auto k = static_cast<size_t>(l);
    layers_.emplace_back(params, std::string(name) + "." + std::to_string(l), sizes[k], sizes[k + 1],
                         l + 1 < layers ? hidden : Activation::None, init);
  }
}

size_t Mlp::predict_scratch_bytes(std::span<const int64_t> sizes) {
  const int64_t width = *std::max_element(sizes.begin(), sizes.end());
  size_t layer_bytes = 0;
  for (size_t l = 0; l + 1 < sizes.size(); ++l) {
    layer_bytes = std::max(layer_bytes, linear_scratch_bytes(kPredictRows, sizes[l], sizes[l + 1]));
  }
  return 2 * Scratch::rounded(static_cast<size_t>(kPredictRows * width) * sizeof(float)) + layer_bytes;
}

void Mlp::predict(Context& ctx, Mat<const float> x, Mat<float> y, Weights weights) const {
  PWDICE_CHECK(x.cols == in() && y.cols == out() && x.rows == y.rows,
               "mlp: {} x {} to {} x {} by a net of {} to {}", x.rows, x.cols, y.rows, y.cols, in(), out());
  const ScratchScope scope(ctx.scratch());
  const int64_t width = *std::max_element(sizes_.begin(), sizes_.end());
  const std::array<float*, 2> turns = {ctx.scratch().take<float>(kPredictRows * width, "mlp"),
                                       ctx.scratch().take<float>(kPredictRows * width, "mlp")};
  for (int64_t begin = 0; begin < x.rows; begin += kPredictRows) {
    const int64_t n = std::min(kPredictRows, x.rows - begin);
    Mat<const float> h = x.slice_rows(begin, n);
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Linear& layer = layers_[l];
      const bool last = l + 1 == layers_.size();
      const Mat<float> to = last ? y.slice_rows(begin, n) : Mat<float>(turns[l % 2], n, layer.out());
      const bool average = weights == Weights::Average;
      const Mat<const float> w = average ? layer.w.average() : layer.w.value();
      const Mat<const float> b = average ? layer.b.average() : layer.b.value();
      linear_forward(ctx, {h, w, flat(b), layer.act, to});
      h = to;
    }
  }
}

Tensor mlp(Tape& tape, const Tensor& x, const Mlp& net) {
  PWDICE_CHECK(x.cols() == net.in(), "mlp: x has {} columns, the net expects {}", x.cols(), net.in());
  MlpSaved saved{&net, {}};
  Mat<const float> h = x.view;
  for (size_t l = 0; l < net.layers().size(); ++l) {
    const Linear& layer = net.layers()[l];
    const Mat<float> y = tape.output(x.rows(), layer.out());
    linear_forward(tape.context(), {h, layer.w.value(), flat(layer.b.value()), layer.act, y});
    saved.y[l] = y.data;
    h = y;
  }
  return tape.record(h, mlp_rule, {x}, saved, true);
}

Tensor mlp_composed(Tape& tape, const Tensor& x, const Mlp& net) {
  Tensor h = x;
  for (const Linear& layer : net.layers()) {
    const Tensor w = tape.parameter(layer.w), b = tape.parameter(layer.b);
    const Tensor pre = add(tape, matmul(tape, h, w, false, true), repeat_row(tape, b, h.rows()));
    h = activate(tape, pre, layer.act);
  }
  return h;
}

Tensor gradient_penalty(Tape& tape, Mat<const float> x, const Mlp& net, float lambda) {
  PWDICE_CHECK(
      net.layers().size() == 3 && net.out() == 1 && net.sizes()[1] == net.sizes()[2],
      "gradient_penalty: expects two hidden layers of one width and one output, the net has {} layers and {} "
      "outputs",
      net.layers().size(), net.out());
  const std::span<const Linear> layers = net.layers();
  const int64_t n = x.rows, d = net.in(), m = net.sizes()[1];
  const Mat<float> h1 = tape.output(n, m), h2 = tape.output(n, m), v1 = tape.output(n, m),
                   g = tape.output(n, d), loss = tape.output(1, 1);
  const Vec<float> norm = tape.arena().take<float>(n);
  gradient_penalty_forward(
      tape.context(),
      {x, layers[0].w.value(), layers[1].w.value(), flat(layers[0].b.value()), flat(layers[1].b.value()),
       flat(layers[2].w.value()), net.hidden(), lambda, h1, h2, v1, g, norm, flat(loss)});
  return tape.record(loss, gradient_penalty_rule, {}, PenaltySaved{&net, lambda, x, h1, h2, v1, g, norm},
                     true);
}

Tensor gradient_penalty_composed(Tape& tape, Mat<const float> x, const Mlp& net, float lambda) {
  const Tensor input = tape.variable(x);
  const Tensor output = sum(tape, mlp_composed(tape, input, net));
  const Tensor g = tape.gradient(output, input, {.create_graph = true});
  const Tensor norm = sqrt(tape, row_sum(tape, square(tape, g)));
  return scale(tape, mean(tape, square(tape, affine(tape, norm, 1.0f, -1.0f))), lambda);
}

}  // namespace pwdice
