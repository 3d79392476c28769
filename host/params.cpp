// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "params.h"

#include <algorithm>
#include <cmath>

#include "../kernels/elementwise.h"
#include "rng.h"
#include "tensor.h"

namespace pwdice {
namespace {

constexpr int64_t kAlignFloats = 16;  // 64 bytes
constexpr int64_t kLossFloats = kAlignFloats;

int64_t aligned(int64_t floats) { return (floats + kAlignFloats - 1) / kAlignFloats * kAlignFloats; }

}  // namespace

Init Init::linear(int64_t in) {
  const float bound = 1.0f / std::sqrt(static_cast<float>(in));
  return uniform(-bound, bound);
}

Init Init::xavier(int64_t in, int64_t out) {
  const float bound = std::sqrt(6.0f / static_cast<float>(in + out));
  return uniform(-bound, bound);
}

Mat<float> Param::value() const { return store->entry_view(store->values(), index); }
Mat<float> Param::gradient() const { return store->entry_view(store->gradients(), index); }
Mat<const float> Param::average() const { return store->entry_view(store->average(), index); }

Param ParamStore::add(std::string name, int64_t rows, int64_t cols, Init init) {
  PWDICE_CHECK(flat_.size() == 0, "{}: parameter {} added after allocate", name_, name);
  PWDICE_CHECK(rows > 0 && cols > 0, "{}: parameter {} is {} x {}", name_, name, rows, cols);
  for (const ParamEntry& entry : entries_) {
    PWDICE_CHECK(entry.name != name, "{}: parameter {} added twice", name_, name);
  }
  entries_.push_back({std::move(name), rows, cols, size_, init});
  size_ += aligned(rows * cols);
  return {this, static_cast<int32_t>(entries_.size()) - 1};
}

void ParamStore::allocate(Context& ctx, bool with_average) {
  PWDICE_CHECK(flat_.size() == 0, "{}: allocated twice", name_);
  PWDICE_CHECK(!entries_.empty(), "{}: no parameters", name_);
  has_average_ = with_average;
  place_ = place_of(ctx);
  flat_ = Array<float>(ctx, (with_average ? 5 : 4) * size_ + kLossFloats);
  fill_zero(ctx, flat_.view().data, static_cast<size_t>(flat_.size()) * sizeof(float));
  written_.assign(entries_.size(), 0);
}

void ParamStore::check_context(std::string_view function, const Context& ctx) const {
  check_place(function, name_, place_, place_of(ctx));
}

void ParamStore::initialise(Context& ctx, uint64_t seed) {
  check_context("initialise", ctx);
  std::vector<float> host(static_cast<size_t>(size_), 0.0f);
  for (const ParamEntry& entry : entries_) {
    if (entry.init.kind == Init::Kind::Zero) continue;
    const RandomStream stream = random_stream(seed, "init/" + entry.name);
    for (int64_t k = 0; k < entry.rows * entry.cols; ++k) {
      const float u = uniform01(stream.at(0, static_cast<uint64_t>(k / 4)).v[k % 4]);
      host[static_cast<size_t>(entry.offset + k)] = entry.init.low + (entry.init.high - entry.init.low) * u;
    }
  }
  upload(ctx, values(), host);
  if (has_average_) upload(ctx, average(), host);
  fill_zero(ctx, first_moments().data, 2 * static_cast<size_t>(size_) * sizeof(float));
}

Param ParamStore::find(std::string_view name) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].name == name) return {this, static_cast<int32_t>(i)};
  }
  fail(ErrorCode::InvalidArgument, "{}: no parameter named {}", name_, name);
}

int64_t ParamStore::count() const {
  int64_t n = 0;
  for (const ParamEntry& entry : entries_) n += entry.rows * entry.cols;
  return n;
}

Vec<float> ParamStore::section(int k) const {
  PWDICE_CHECK(flat_.size() > 0, "{}: used before allocate", name_);
  return flat_.view().slice(k * size_ + (k > 1 ? kLossFloats : 0), size_);  // the loss ends section 1
}

Vec<float> ParamStore::average() const {
  PWDICE_CHECK(has_average_, "{}: allocated without an average", name_);
  return section(4);
}

Vec<float> ParamStore::gradients_and_loss() const { return {gradients().data, size_ + 1}; }

std::vector<StateSpan> ParamStore::state() const {
  const size_t bytes = static_cast<size_t>(size_) * sizeof(float);
  std::vector<StateSpan> spans = {{name_ + "/values", values().data, bytes},
                                  {name_ + "/first_moments", first_moments().data, bytes},
                                  {name_ + "/second_moments", second_moments().data, bytes}};
  if (has_average_) spans.push_back({name_ + "/average", average().data, bytes});
  return spans;
}

Mat<float> ParamStore::entry_view(Vec<float> section, int32_t index) const {
  const ParamEntry& entry = entries_[static_cast<size_t>(index)];
  return {section.data + entry.offset, entry.rows, entry.cols};
}

void ParamStore::begin_step() {
  std::fill(written_.begin(), written_.end(), char{0});
  open_ = true;
}

Mat<float> ParamStore::gradient_target(Param param, Arena& arena) {
  PWDICE_CHECK(open_, "{}: a gradient arrives, but the tape's step did not begin with this store", name_);
  const Mat<float> place = param.gradient();
  return written_[static_cast<size_t>(param.index)] ? arena.matrix(place.rows, place.cols) : place;
}

void ParamStore::contribute(Context& ctx, Param param, Mat<const float> target) {
  PWDICE_CHECK(open_, "{}: a gradient arrives, but the tape's step did not begin with this store", name_);
  const Mat<float> place = param.gradient();
  const int64_t n = place.size();
  char& written = written_[static_cast<size_t>(param.index)];
  if (written) {
    accumulate(ctx, {{target.data, n}, 1.0f, {place.data, n}});
  } else if (target.data != place.data) {
    copy_bytes(ctx, place.data, target.data, static_cast<size_t>(n) * sizeof(float));
  }
  written = 1;
}

void ParamStore::end_step(Context& ctx) {
  PWDICE_CHECK(open_, "{}: a step ends, but the tape's step did not begin with this store", name_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (written_[i]) continue;
    const size_t bytes = static_cast<size_t>(entries_[i].rows * entries_[i].cols) * sizeof(float);
    fill_zero(ctx, gradients().data + entries_[i].offset, bytes);
  }
  open_ = false;
}

}  // namespace pwdice
