// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// What the tests of the runtime share: a Context and a tape of each backend, and functions of several inputs
// as functions of one vector, which is what central differences want.

#include <functional>

#include "../host/functions.h"
#include "op_case.h"

namespace pwdice::test {

struct Shape {
  int64_t rows, cols;
  int64_t size() const { return rows * cols; }
};
using Values = std::vector<std::vector<double>>;

inline Values split(const std::vector<Shape>& shapes, const std::vector<double>& x) {
  Values parts;
  auto at = x.begin();
  for (const Shape& s : shapes) parts.emplace_back(at, at + s.size()), at += s.size();
  return parts;
}

class TapeTest : public testing::TestWithParam<Backend> {
 protected:
  Context ctx_{ContextOptions{.backend = GetParam(), .threads = 2}};
  Tape tape_{ctx_};
  std::vector<Array<float>> memory_;

  Mat<const float> in_memory(const std::vector<float>& host, int64_t rows, int64_t cols) {
    memory_.emplace_back(ctx_, rows * cols);
    upload(ctx_, memory_.back().view(), host);
    return memory_.back().matrix(rows, cols);
  }
  Vec<const float> in_memory(const std::vector<float>& host) {
    return {in_memory(host, static_cast<int64_t>(host.size()), 1).data, static_cast<int64_t>(host.size())};
  }
};

}  // namespace pwdice::test
