// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <array>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "params.h"
#include "tensor.h"

namespace pwdice {

// Reverse-mode differentiation. Functions (functions.h) compute a value at once and record how its gradient
// flows back; backward() walks the record in reverse.
//   - A rule overwrites its outputs; the tape does the adding.
//   - Rules of the small functions are themselves made of functions, so gradient(..., {.create_graph = true})
//     records the gradient and it can be differentiated again. A fused function without a second derivative
//     throws Unsupported there.
//   - After the first step nothing is allocated: nodes live in a vector that keeps its capacity, values in an
//     arena that keeps its blocks.
// One tape per kind of step: its addresses then repeat, and the step can be captured as a graph.
class Tape {
 public:
  explicit Tape(Context& ctx, size_t arena_limit_bytes = Arena::kNoLimit);
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  void begin();                    // forgets all values of the step before
  void begin(ParamStore& params);  // and starts the gradient of params anew

  Tensor constant(Mat<const float> view) const { return {view, -1, false}; }
  Tensor constant(Vec<const float> view) const { return {{view.data, view.size, 1}, -1, false}; }
  Tensor full(int64_t rows, int64_t cols, float value);
  Tensor variable(Mat<const float> view);  // a leaf that gradient() may name
  Tensor parameter(Param param);           // a leaf whose gradient backward() adds to its store

  // Gradients of the scalar loss into the stores of all parameters it depends on. Ends the record: a
  // network's gradient takes the place of its activations, so nothing of this step can be differentiated
  // afterwards.
  void backward(const Tensor& loss);

  // d y / d inputs for a scalar y, zero where y does not depend on an input. No store is touched.
  struct GradientOptions {
    bool create_graph = false;
  };
  void gradient(const Tensor& y, std::span<const Tensor> inputs, std::span<Tensor> gradients,
                GradientOptions options);
  Tensor gradient(const Tensor& y, const Tensor& input, GradientOptions options);

  Context& context() { return ctx_; }
  Arena& arena() { return arena_; }
  size_t size() const { return nodes_.size(); }

  // --- For the authors of functions ---

  static constexpr int kMaxInputs = 4;
  static constexpr size_t kPayloadBytes = 320;
  struct Node;
  using Rule = void (*)(Tape& tape, const Node& node, const Tensor& d_out);
  struct Node {
    Rule rule = nullptr;
    int inputs_count = 0;
    std::array<Tensor, kMaxInputs> inputs;
    Tensor out;
    alignas(16) std::array<std::byte, kPayloadBytes> bytes;

    template <class Payload>
    Payload payload() const {
      Payload p;
      std::memcpy(&p, bytes.data(), sizeof p);
      return p;
    }
  };

  Mat<float> output(int64_t rows, int64_t cols) { return arena_.matrix(rows, cols); }

  // Puts a value on the tape. Without parameters of its own (owns_parameters) a function of constants is a
  // constant, and so is everything computed while a gradient without graph is taken.
  template <class Payload>
  Tensor record(Mat<const float> out, Rule rule, std::initializer_list<Tensor> inputs, const Payload& payload,
                bool owns_parameters = false) {
    static_assert(std::is_trivially_copyable_v<Payload> && sizeof(Payload) <= kPayloadBytes);
    Node* node = append(out, rule, inputs, owns_parameters);
    if (node == nullptr) return constant(out);
    std::memcpy(node->bytes.data(), &payload, sizeof payload);
    return node->out;
  }
  Tensor record(Mat<const float> out, Rule rule, std::initializer_list<Tensor> inputs) {
    Node* node = append(out, rule, inputs, false);
    return node == nullptr ? constant(out) : node->out;
  }

  // While a rule runs:
  bool wants(const Tensor& input) const;                // does the gradient of this input matter?
  bool wants_parameters() const { return to_stores_; }  // backward(), not gradient(): the last sweep
  bool creating_graph() const { return recording_; }
  void require_first_order(const char* function) const;  // throws Unsupported while creating a graph
  void contribute(const Tensor& input, const Tensor& d_input);
  // The same for a block of the input, without a padded copy; only while no graph is created.
  void contribute_block(const Tensor& input, int64_t row, int64_t col, const Tensor& d_block);

 private:
  struct Slot {
    Tensor gradient;
    float* owned = nullptr;  // the gradient's memory when this slot alone uses it
    bool defined = false;
  };
  Node* append(Mat<const float> out, Rule rule, std::initializer_list<Tensor> inputs, bool owns_parameters);
  void sweep(const Tensor& root);
  void mark_paths(const Tensor& root, std::span<const Tensor> inputs);
  void check_root(const char* function, const Tensor& root) const;

  Context& ctx_;
  Arena arena_;
  std::vector<Node> nodes_;
  std::vector<Slot> slots_;    // gradient of each node, during a sweep
  std::vector<char> on_path_;  // nodes between the root and the inputs of gradient()
  Array<float> one_;
  bool recording_ = true, to_stores_ = false, sweeping_ = false, ended_ = false;
};

}  // namespace pwdice
