// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <span>
#include <string>
#include <vector>

#include "arena.h"

namespace pwdice {

// How a parameter starts. Drawn on the host from the random stream "init/<name>", so every backend and thread
// count starts from the same bits.
struct Init {
  enum class Kind { Zero, Uniform /* in [low, high) */ } kind = Kind::Zero;
  float low = 0, high = 0;

  static Init zero() { return {}; }
  static Init uniform(float low, float high) { return {Kind::Uniform, low, high}; }
  static Init linear(int64_t in);               // +-1/sqrt(in): weight and bias of PyTorch's Linear
  static Init xavier(int64_t in, int64_t out);  // +-sqrt(6/(in + out))
};

class ParamStore;

// One named matrix of a store; a vector is (n, 1). The store must outlive it.
struct Param {
  ParamStore* store = nullptr;
  int32_t index = -1;

  Mat<float> value() const;
  Mat<float> gradient() const;
  Mat<const float> average() const;
};

struct ParamEntry {
  std::string name;
  int64_t rows, cols;
  int64_t offset;  // in floats from the start of each section
  Init init;
};

// A piece of training state in the backend's memory. Saving and restoring the bytes of every piece resumes
// a run exactly.
struct StateSpan {
  std::string name;
  void* data;
  size_t bytes;
};

// All parameters of a model in one flat buffer of equal sections, so that clipping, Adam and the check for
// NaN are one pass each:
//   values | gradients, loss | first moments | second moments | average (optional)
// Entries lie in the order of add(), each aligned to 64 bytes; the padding is zero and stays zero.
//   ParamStore params("discriminator");
//   Mlp net(params, "net", {11, 256, 256, 1}, Activation::Tanh);
//   params.allocate(ctx);
//   params.initialise(ctx, seed);
class ParamStore {
 public:
  explicit ParamStore(std::string name) : name_(std::move(name)) {}
  ParamStore(const ParamStore&) = delete;
  ParamStore& operator=(const ParamStore&) = delete;

  Param add(std::string name, int64_t rows, int64_t cols, Init init);  // before allocate
  void allocate(Context& ctx, bool with_average = false);
  void initialise(Context& ctx, uint64_t seed);  // draws the values; moments 0, average = values

  const std::string& name() const { return name_; }
  std::span<const ParamEntry> entries() const { return entries_; }
  Param find(std::string_view name);      // throws InvalidArgument
  int64_t size() const { return size_; }  // floats of a section
  int64_t count() const;                  // parameters, without padding
  bool has_average() const { return has_average_; }
  void check_context(std::string_view function, const Context& ctx) const;  // throws when its memory is elsewhere

  Vec<float> values() const { return section(0); }
  Vec<float> gradients() const { return section(1); }
  Vec<float> first_moments() const { return section(2); }
  Vec<float> second_moments() const { return section(3); }
  Vec<float> average() const;
  Vec<float> gradients_and_loss() const;  // one vector, so that one pass sees whether all is finite
  std::vector<StateSpan> state() const;   // values, moments, average

  // The gradient of a step. begin_step() forgets the last one; the first contribution to an entry is written
  // straight to its place and later ones are added; end_step() zeroes what got none.
  void begin_step();
  Mat<float> gradient_target(Param param, Arena& arena);                // where to write a contribution
  void contribute(Context& ctx, Param param, Mat<const float> target);  // it has been written
  void end_step(Context& ctx);

 private:
  friend struct Param;
  Vec<float> section(int k) const;
  Mat<float> entry_view(Vec<float> section, int32_t index) const;

  std::string name_;
  std::vector<ParamEntry> entries_;
  std::vector<char> written_;
  Array<float> flat_;
  Place place_;
  int64_t size_ = 0;
  bool has_average_ = false, open_ = false;
};

}  // namespace pwdice
