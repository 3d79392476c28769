// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "layers.h"

#include <algorithm>
#include <array>
#include <string>

#include "../kernels/gradient_penalty.h"
#include "../kernels/linear.h"
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

// A network as its op sees it.
struct MlpLayers {
  std::array<MlpLayer, Mlp::kMaxLayers> list;
  size_t count;

  MlpLayers(const Mlp& net, Weights weights) : count(net.layers().size()) {
    for (size_t l = 0; l < count; ++l) {
      const Linear& layer = net.layers()[l];
      const bool average = weights == Weights::Average;
      list[l] = {average ? layer.w.average() : layer.w.value(),
                 flat(average ? layer.b.average() : layer.b.value()),
                 layer.act,
                 {}};
    }
  }
  operator std::span<const MlpLayer>() const { return {list.data(), count}; }
};

Mat<float> output_of(const Linear& layer, float* data, int64_t rows, bool last) {
  return {data, rows, layer.out(), last ? layer.out() : mlp_stride(layer.out())};
}

// The gradient with respect to x alone, layer by layer; the outputs stay for another sweep.
Mat<const float> mlp_input_gradient(Tape& tape, std::span<const MlpLayer> layers, Mat<const float> x,
                                    Mat<const float> d) {
  for (size_t l = layers.size(); l-- > 0;) {
    const Mat<const float> input = l == 0 ? x : Mat<const float>(layers[l - 1].y);
    const Mat<float> below = tape.output(input.rows, input.cols);
    const Activation act = l == 0 ? Activation::None : layers[l - 1].act;
    linear_backward_input(tape.context(), {d, layers[l].w, input, act, below});
    d = below;
  }
  return d;
}

// The parameters' gradients go straight to their store.
void mlp_rule(Tape& tape, const Node& node, const Tensor& d_out) {
  tape.require_first_order("mlp");
  const auto saved = node.payload<MlpSaved>();
  const std::span<const Linear> layers = saved.net->layers();
  const Tensor& x = node.inputs[0];
  MlpLayers net(*saved.net, Weights::Current);
  for (size_t l = 0; l < net.count; ++l)
    net.list[l].y = output_of(layers[l], saved.y[l], x.rows(), l + 1 == net.count);
  if (!tape.wants_parameters()) {
    if (tape.wants(x)) tape.contribute(x, tape.constant(mlp_input_gradient(tape, net, x.view, d_out.view)));
    return;
  }
  const Mat<float> d_x = tape.wants(x) ? tape.output(x.rows(), x.cols()) : Mat<float>();
  {
    const ArenaScope scope(tape.arena());
    std::array<MlpGradient, Mlp::kMaxLayers> gradients;
    for (size_t l = 0; l < net.count; ++l) {
      gradients[l] = {layers[l].w.store->gradient_target(layers[l].w, tape.arena()),
                      flat(layers[l].b.store->gradient_target(layers[l].b, tape.arena()))};
    }
    mlp_backward(tape.context(), {x.view, net, d_out.view, std::span(gradients.data(), net.count), d_x});
    for (size_t l = net.count; l-- > 0;) {
      layers[l].w.store->contribute(tape.context(), layers[l].w, gradients[l].d_w);
      const Vec<float> d_b = gradients[l].d_b;
      layers[l].b.store->contribute(tape.context(), layers[l].b, Mat<const float>(d_b.data, d_b.size, 1));
    }
  }
  if (d_x.data != nullptr) tape.contribute(x, tape.constant(d_x));
}

// The parameters that the penalty depends on, in the order of its gradients.
std::array<Param, 5> penalty_parameters(const Mlp& net) {
  const std::span<const Linear> layers = net.layers();
  return {layers[0].w, layers[0].b, layers[1].w, layers[1].b, layers[2].w};
}

struct PenaltySaved {
  const Mlp* net;
  std::array<Mat<float>, 5> gradients;
};

void gradient_penalty_rule(Tape& tape, const Node& node, const Tensor& d_loss) {
  tape.require_first_order("gradient_penalty");
  if (!tape.wants_parameters()) return;
  const auto saved = node.payload<PenaltySaved>();
  const std::array<Param, 5> params = penalty_parameters(*saved.net);
  for (size_t k = 0; k < params.size(); ++k) {
    const ArenaScope scope(tape.arena());
    Mat<float> d = saved.gradients[k];
    if (!d_loss.unit) {
      d = params[k].store->gradient_target(params[k], tape.arena());
      scale_by(tape.context(), {flat(saved.gradients[k]), d_loss.vec(), flat(d)});
    }
    params[k].store->contribute(tape.context(), params[k], d);
  }
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
  const int64_t width = mlp_stride(*std::max_element(sizes.begin(), sizes.end()));
  return 2 * Scratch::rounded(static_cast<size_t>(kPredictRows * width) * sizeof(float)) +
         mlp_scratch_bytes(kPredictRows, sizes);
}

void Mlp::predict(Context& ctx, Mat<const float> x, Mat<float> y, Weights weights) const {
  PWDICE_CHECK(x.cols == in() && y.cols == out() && x.rows == y.rows,
               "mlp: {} x {} to {} x {} by a net of {} to {}", x.rows, x.cols, y.rows, y.cols, in(), out());
  layers_.front().w.store->check_context("mlp.predict", ctx);
  const ScratchScope scope(ctx.scratch());
  const int64_t width = mlp_stride(*std::max_element(sizes_.begin(), sizes_.end()));
  const std::array<float*, 2> turns = {ctx.scratch().take<float>(kPredictRows * width, "mlp"),
                                       ctx.scratch().take<float>(kPredictRows * width, "mlp")};
  MlpLayers net(*this, weights);
  for (int64_t begin = 0; begin < x.rows; begin += kPredictRows) {
    const int64_t n = std::min(kPredictRows, x.rows - begin);
    for (size_t l = 0; l + 1 < net.count; ++l) {  // one stride: a row has its place in all layers
      net.list[l].y = {turns[l % 2], n, layers_[l].out(), width};
    }
    net.list[net.count - 1].y = y.slice_rows(begin, n);
    mlp_forward(ctx, {x.slice_rows(begin, n), net});
  }
}

Tensor mlp(Tape& tape, const Tensor& x, const Mlp& net) {
  PWDICE_CHECK(x.cols() == net.in(), "mlp: x has {} columns, the net expects {}", x.cols(), net.in());
  MlpSaved saved{&net, {}};
  MlpLayers layers(net, Weights::Current);
  for (size_t l = 0; l < layers.count; ++l) {
    const bool last = l + 1 == layers.count;
    const int64_t width = net.layers()[l].out();
    saved.y[l] = tape.output(x.rows(), last ? width : mlp_stride(width)).data;
    layers.list[l].y = output_of(net.layers()[l], saved.y[l], x.rows(), last);
  }
  mlp_forward(tape.context(), {x.view, layers});
  return tape.record(layers.list[layers.count - 1].y, mlp_rule, {x}, saved, true);
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
  const std::array<Param, 5> p = penalty_parameters(net);
  std::array<Mat<float>, 5> d;
  for (size_t k = 0; k < p.size(); ++k) d[k] = tape.output(entry(p[k]).rows, entry(p[k]).cols);
  const Mat<float> loss = tape.output(1, 1);
  const Vec<float> norm = tape.arena().take<float>(x.rows);
  gradient_penalty(tape.context(),
                   {x, p[0].value(), p[2].value(), flat(p[1].value()), flat(p[3].value()), flat(p[4].value()),
                    net.hidden(), lambda, norm, flat(loss), d[0], d[2], flat(d[1]), flat(d[3]), flat(d[4])});
  return tape.record(loss, gradient_penalty_rule, {}, PenaltySaved{&net, d}, true);
}

Tensor gradient_penalty_composed(Tape& tape, Mat<const float> x, const Mlp& net, float lambda) {
  const Tensor input = tape.variable(x);
  const Tensor output = sum(tape, mlp_composed(tape, input, net));
  const Tensor g = tape.gradient(output, input, {.create_graph = true});
  const Tensor norm = sqrt(tape, row_sum(tape, square(tape, g)));
  return scale(tape, mean(tape, square(tape, affine(tape, norm, 1.0f, -1.0f))), lambda);
}

}  // namespace pwdice
