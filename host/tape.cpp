// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "tape.h"

#include <algorithm>

#include "../kernels/block.h"
#include "../kernels/elementwise.h"
#include "functions.h"

namespace pwdice {
namespace {

constexpr size_t kExpectedNodes = 128;

// Sets a flag for as long as a sweep lasts, also when a rule throws.
class Setting {
 public:
  Setting(bool& flag, bool value) : flag_(flag), before_(flag) { flag = value; }
  ~Setting() { flag_ = before_; }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  bool& flag_;
  bool before_;
};

void parameter_rule(Tape& tape, const Tape::Node& node, const Tensor& d_out) {
  const Param param = node.payload<Param>();
  if (tape.wants_parameters()) param.store->contribute(tape.context(), param, d_out.view);
}

}  // namespace

Tape::Tape(Context& ctx, size_t arena_limit_bytes) : ctx_(ctx), arena_(ctx, arena_limit_bytes), one_(ctx, 1) {
  nodes_.reserve(kExpectedNodes);
  slots_.reserve(kExpectedNodes);
  on_path_.reserve(kExpectedNodes);
  fill(ctx, one_.view(), 1.0f);
}

void Tape::begin() {
  arena_.reset();
  nodes_.clear();
  ended_ = false;
}

void Tape::begin(ParamStore& params) {
  params.check_context("tape.begin", ctx_);
  begin();
  params.begin_step();
}

Tensor Tape::full(int64_t rows, int64_t cols, float value) {
  const Mat<float> out = output(rows, cols);
  fill(ctx_, {out.data, out.size()}, value);
  return constant(out);
}

Tensor Tape::variable(Mat<const float> view) {
  const Node* node = append(view, nullptr, {}, true);
  return node == nullptr ? constant(view) : node->out;
}

Tensor Tape::parameter(Param param) { return record(param.value(), parameter_rule, {}, param, true); }

Tape::Node* Tape::append(Mat<const float> out, Rule rule, std::initializer_list<Tensor> inputs,
                         bool owns_parameters) {
  const auto on_tape = [](const Tensor& t) { return t.node >= 0; };
  if (!recording_ || (!owns_parameters && std::none_of(inputs.begin(), inputs.end(), on_tape)))
    return nullptr;
  Node& node = nodes_.emplace_back();
  node.rule = rule;
  node.inputs_count = static_cast<int>(inputs.size());
  std::copy(inputs.begin(), inputs.end(), node.inputs.begin());
  node.out = {out, static_cast<int32_t>(nodes_.size()) - 1, false};
  return &node;
}

void Tape::check_root(const char* function, const Tensor& root) const {
  PWDICE_CHECK(!sweeping_, "{}: called from a backward rule", function);
  PWDICE_CHECK(!ended_, "{}: backward() has ended this step's record", function);
  PWDICE_CHECK(root.size() == 1, "{}: the root is {} x {}, expected a scalar", function, root.rows(),
               root.cols());
  PWDICE_CHECK(root.node >= 0 && root.node < static_cast<int64_t>(nodes_.size()),
               "{}: the root is a constant or of another step", function);
}

void Tape::backward(const Tensor& loss) {
  check_root("tape.backward", loss);
  const Setting no_graph(recording_, false), stores(to_stores_, true);
  ended_ = true;
  on_path_.assign(nodes_.size(), 1);
  sweep(loss);
}

void Tape::gradient(const Tensor& y, std::span<const Tensor> inputs, std::span<Tensor> gradients,
                    GradientOptions options) {
  check_root("tape.gradient", y);
  PWDICE_CHECK(inputs.size() == gradients.size(), "tape.gradient: {} inputs and room for {} gradients",
               inputs.size(), gradients.size());
  const Setting graph(recording_, options.create_graph);
  mark_paths(y, inputs);
  sweep(y);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    const bool reached = input.node <= y.node && slots_[static_cast<size_t>(input.node)].defined;
    gradients[i] =
        reached ? slots_[static_cast<size_t>(input.node)].gradient : full(input.rows(), input.cols(), 0.0f);
  }
}

Tensor Tape::gradient(const Tensor& y, const Tensor& input, GradientOptions options) {
  Tensor result;
  gradient(y, {&input, 1}, {&result, 1}, options);
  return result;
}

void Tape::mark_paths(const Tensor& root, std::span<const Tensor> inputs) {
  on_path_.assign(nodes_.size(), 0);
  for (const Tensor& input : inputs) {
    PWDICE_CHECK(input.node >= 0 && input.node < static_cast<int64_t>(nodes_.size()),
                 "tape.gradient: an input is a constant or of another step");
    on_path_[static_cast<size_t>(input.node)] = 1;
  }
  for (size_t id = 0; id <= static_cast<size_t>(root.node); ++id) {
    const Node& node = nodes_[id];
    for (int k = 0; k < node.inputs_count; ++k) {
      const Tensor& input = node.inputs[static_cast<size_t>(k)];
      if (input.node >= 0 && on_path_[static_cast<size_t>(input.node)]) on_path_[id] = 1;
    }
  }
}

void Tape::sweep(const Tensor& root) {
  const Setting sweeping(sweeping_, true);
  slots_.assign(static_cast<size_t>(root.node) + 1, Slot{});
  slots_.back() = {{Mat<const float>(one_.view().data, 1, 1), -1, true}, nullptr, true};
  for (size_t id = slots_.size(); id-- > 0;) {
    if (!slots_[id].defined || !on_path_[id] || nodes_[id].rule == nullptr) continue;
    const Node node = nodes_[id];  // a copy: a rule that records may move the nodes
    node.rule(*this, node, slots_[id].gradient);
  }
}

bool Tape::wants(const Tensor& input) const {
  return input.node >= 0 && on_path_[static_cast<size_t>(input.node)];
}

void Tape::require_first_order(const char* function) const {
  if (recording_) {
    fail(ErrorCode::Unsupported, "{}: a fused function has no second derivative; use its composed form",
         function);
  }
}

void Tape::contribute(const Tensor& input, const Tensor& d_input) {
  if (!wants(input)) return;
  PWDICE_CHECK(d_input.rows() == input.rows() && d_input.cols() == input.cols(),
               "tape: a gradient of {} x {} for a value of {} x {}", d_input.rows(), d_input.cols(),
               input.rows(), input.cols());
  Slot& slot = slots_[static_cast<size_t>(input.node)];
  if (!slot.defined) {
    slot = {d_input, nullptr, true};
  } else if (slot.owned != nullptr) {
    accumulate(ctx_, {d_input.vec(), 1.0f, {slot.owned, d_input.size()}});
  } else if (recording_) {
    slot.gradient = add(*this, slot.gradient, d_input);
  } else {
    const Mat<float> total = output(input.rows(), input.cols());
    binary_map(ctx_, {Binary::Add, slot.gradient.vec(), d_input.vec(), {total.data, total.size()}});
    slot = {constant(total), total.data, true};
  }
}

void Tape::contribute_block(const Tensor& input, int64_t row, int64_t col, const Tensor& d_block) {
  if (!wants(input)) return;
  Slot& slot = slots_[static_cast<size_t>(input.node)];
  if (slot.owned == nullptr) {
    const Mat<float> total = output(input.rows(), input.cols());
    const size_t bytes = static_cast<size_t>(total.size()) * sizeof(float);
    if (slot.defined) {
      copy_bytes(ctx_, total.data, slot.gradient.vec().data, bytes);
    } else {
      fill_zero(ctx_, total.data, bytes);
    }
    slot = {constant(total), total.data, true};
  }
  float* corner = slot.owned + row * input.cols() + col;
  add_block(ctx_, {d_block.view, {corner, d_block.rows(), d_block.cols(), input.cols()}});
}

}  // namespace pwdice
