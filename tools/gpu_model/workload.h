// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The ops at the sizes of a training, on device memory that a Workload owns.

#include <cstdint>
#include <vector>

#include "../../kernels/context.h"
#include "../../kernels/memory.h"

namespace pwdice::tools {

class Workload {
 public:
  explicit Workload(Context& context) : ctx(context) {}
  ~Workload() {
    for (void* memory : memory_) release(ctx, memory);
  }
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  template <class T>
  Vec<T> from(const std::vector<T>& host) {
    const auto n = static_cast<int64_t>(host.size());
    auto* memory = static_cast<T*>(allocate(ctx, host.size() * sizeof(T)));
    memory_.push_back(memory);
    upload(ctx, memory, host.data(), host.size() * sizeof(T));
    return {memory, n};
  }
  // Values in (0, 1): valid as rows, weights and actions alike.
  Vec<float> vec(int64_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 1009 + 1) / 1024.f;
    return from(values);
  }
  Mat<float> mat(int64_t rows, int64_t cols) { return {vec(rows * cols).data, rows, cols, cols}; }

  Context& ctx;

 private:
  std::vector<void*> memory_;
};

void count_infonce(Workload& work, int64_t n, int64_t d);
void count_layers(Workload& work);
void count_transport(Workload& work, int64_t n, int64_t m);
void count_pairs(Workload& work, int64_t n);
void count_losses(Workload& work, int64_t rows, int64_t width);
void count_elementwise(Workload& work);
void count_reductions(Workload& work);
void count_tables(Workload& work);  // sampling, scan, quantiles and cloning weights
void count_cloning(Workload& work);

}  // namespace pwdice::tools
