// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// A network with its data, for mlp_test.cpp and relu_head_test.cpp.

#include <array>
#include <cmath>

#include "../kernels/mlp.h"
#include "op_case.h"
#include "reference.h"

namespace pwdice::test {

using reference::Matrix;

// A network with its data and what double (or float) code makes of it.
struct MlpProblem {
  int64_t n;
  std::vector<int64_t> sizes;
  Activation act;
  std::vector<float> x, d_pre;
  std::vector<std::vector<float>> w, b;

  MlpProblem(int64_t rows, std::vector<int64_t> widths, Activation f, Data data = Data::Normal)
      : n(rows), sizes(std::move(widths)), act(f) {
    x = make_data(data, n * sizes.front(), 1), d_pre = normal(n * sizes.back(), 2);
    for (size_t l = 0; l < layers(); ++l) {
      w.push_back(normal(sizes[l] * sizes[l + 1], 3 + l)), b.push_back(normal(sizes[l + 1], 20 + l));
      for (float& v : w.back()) v /= std::sqrt(static_cast<float>(sizes[l]));
    }
  }

  size_t layers() const { return sizes.size() - 1; }
  Activation activation(size_t l) const { return l + 1 < layers() ? act : Activation::None; }
  size_t scratch_bytes() const { return mlp_scratch_bytes(n, sizes); }
  std::string text() const {
    std::string text = std::to_string(n) + " rows,";
    for (const int64_t size : sizes) text += " " + std::to_string(size);
    return text;
  }

  // Forward, and backward where asked; every matrix with a stride of its own. An even number of rows has hidden
  // layers laid out as networks have them.
  void call(OpRun& op, bool backward, bool want_d_x = true) const {
    std::array<MlpLayer, kMlpMaxLayers> list;
    std::array<MlpGradient, kMlpMaxLayers> gradients;
    for (size_t l = 0; l < layers(); ++l) {
      const int64_t in = sizes[l], out = sizes[l + 1];
      const std::string k = std::to_string(l);
      list[l] = {op.in(w[l], out, in, in + 1), op.in(b[l]), activation(l),
                 op.out("y" + k, n, out, mlp_stride(out) + (n % 2 == 0 ? 0 : 3))};
      if (backward) gradients[l] = {op.out("d_w" + k, out, in, in + 2), op.out("d_b" + k, out)};
    }
    const Mat<const float> input = op.in(x, n, sizes.front(), sizes.front() + 3);
    mlp_forward(op.ctx, {input, {list.data(), layers()}});
    if (!backward) return;
    const Mat<float> d_x = want_d_x ? op.out("d_x", n, sizes.front(), sizes.front() + 4) : Mat<float>();
    mlp_backward(op.ctx, {input,
                          {list.data(), layers()},
                          op.in(d_pre, n, sizes.back(), sizes.back() + 2),
                          {gradients.data(), layers()},
                          d_x});
  }

  template <class T>
  std::vector<Matrix<T>> outputs() const {
    std::vector<Matrix<T>> y;
    for (size_t l = 0; l < layers(); ++l) {
      const Matrix<T> in = l == 0 ? Matrix<T>(n, sizes[0], x) : y.back();
      y.push_back(reference::linear(in, Matrix<T>(sizes[l + 1], sizes[l], w[l]), to<T>(b[l]), activation(l)));
    }
    return y;
  }

  template <class T>
  struct Gradients {
    std::vector<std::vector<T>> d_w, d_b;
    std::vector<T> d_x;
  };
  template <class T>
  Gradients<T> gradients() const {
    const std::vector<Matrix<T>> y = outputs<T>();
    Gradients<T> g;
    g.d_w.resize(layers()), g.d_b.resize(layers());
    Matrix<T> d(n, sizes.back(), d_pre);
    for (size_t l = layers(); l-- > 0;) {
      const Matrix<T> in = l == 0 ? Matrix<T>(n, sizes[0], x) : y[l - 1];
      g.d_w[l] = product(transpose(d), in).data;
      g.d_b[l].resize(static_cast<size_t>(sizes[l + 1]));
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < d.cols; ++j) g.d_b[l][static_cast<size_t>(j)] += d(i, j);
      }
      d = product(d, Matrix<T>(sizes[l + 1], sizes[l], w[l]));
      for (size_t i = 0; l > 0 && i < d.data.size(); ++i)
        d.data[i] *= reference::activation_slope(act, in.data[i]);
    }
    g.d_x = d.data;
    return g;
  }

  void compare_outputs(const Outputs& got) const {
    const auto exact = outputs<double>();
    const auto plain = outputs<float>();
    for (size_t l = 0; l < layers(); ++l)
      expect_close(got["y" + std::to_string(l)], exact[l].data, plain[l].data);
  }
  void compare_gradients(const Outputs& got, bool with_d_x = true) const {
    const auto exact = gradients<double>();
    const auto plain = gradients<float>();
    for (size_t l = 0; l < layers(); ++l) {
      SCOPED_TRACE("layer " + std::to_string(l));
      expect_close(got["d_w" + std::to_string(l)], exact.d_w[l], plain.d_w[l]);
      expect_close(got["d_b" + std::to_string(l)], exact.d_b[l], plain.d_b[l]);
    }
    if (with_d_x) expect_close(got["d_x"], exact.d_x, plain.d_x);
  }
};

}  // namespace pwdice::test
