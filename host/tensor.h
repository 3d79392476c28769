// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "../kernels/memory.h"

namespace pwdice {

// A value of a step: a view of memory that lives until the tape's next begin(), and its place on the tape.
// Copied freely. A vector is (n, 1), a scalar (1, 1).
struct Tensor {
  Mat<const float> view;
  int32_t node = -1;  // -1: a constant, nothing flows back to it
  bool unit = false;  // a scalar known to be 1: the gradient of a loss by itself

  int64_t rows() const { return view.rows; }
  int64_t cols() const { return view.cols; }
  int64_t size() const { return view.size(); }
  Vec<const float> vec() const {
    PWDICE_CHECK(view.contiguous(), "tensor: {} x {} with row stride {} is not contiguous", view.rows,
                 view.cols, view.stride);
    return {view.data, view.size()};
  }
};

// Typed copies between host memory and the backend's. Neither belongs inside a captured step.
template <class T>
void upload(Context& ctx, Vec<T> to, std::type_identity_t<std::span<const T>> host) {
  PWDICE_CHECK(to.size == static_cast<int64_t>(host.size()), "upload: {} values into {}", host.size(),
               to.size);
  upload(ctx, to.data, host.data(), host.size_bytes());
}

template <class T>
std::vector<std::remove_const_t<T>> download(Context& ctx, Vec<T> from) {
  std::vector<std::remove_const_t<T>> host(static_cast<size_t>(from.size));
  download(ctx, host.data(), from.data, host.size() * sizeof(T));
  return host;
}

inline std::vector<float> download(Context& ctx, const Tensor& tensor) { return download(ctx, tensor.vec()); }

inline float download_scalar(Context& ctx, const Tensor& tensor) {
  PWDICE_CHECK(tensor.size() == 1, "download_scalar: the tensor is {} x {}", tensor.rows(), tensor.cols());
  float value = 0;
  download(ctx, &value, tensor.view.data, sizeof value);
  return value;
}

}  // namespace pwdice
