// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "gemm.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace ptxcpu {
namespace {

// What a tensor core keeps of a float: 11 bits of the significand, rounded to nearest.
float round_to_tf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000) & 0xffffe000u;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// op(matrix) as a packed column-major (rows, columns) copy.
std::vector<float> pack(const float* matrix, int stride, bool transposed, int rows, int columns, bool tf32) {
  std::vector<float> packed(size_t(rows) * columns);
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < rows; ++i) {
      const float value = transposed ? matrix[j + size_t(i) * stride] : matrix[i + size_t(j) * stride];
      packed[i + size_t(j) * rows] = tf32 ? round_to_tf32(value) : value;
    }
  }
  return packed;
}

void multiply_one(const Gemm& g, float alpha, float beta, const float* a, const float* b, float* c) {
  const std::vector<float> left = pack(a, g.lda, g.transpose_a, g.m, g.k, g.tf32);
  const std::vector<float> right = pack(b, g.ldb, g.transpose_b, g.k, g.n, g.tf32);
  std::vector<float> column(g.m);
  for (int j = 0; j < g.n; ++j) {
    std::fill(column.begin(), column.end(), 0.0f);
    for (int l = 0; l < g.k; ++l) {
      const float factor = right[l + size_t(j) * g.k];
      const float* source = left.data() + size_t(l) * g.m;
      for (int i = 0; i < g.m; ++i) column[i] += factor * source[i];
    }
    float* target = c + size_t(j) * g.ldc;
    // beta 0 must not read c: it may hold NaN.
    for (int i = 0; i < g.m; ++i) target[i] = alpha * column[i] + (beta != 0 ? beta * target[i] : 0.0f);
  }
}

}  // namespace

void multiply(const Gemm& g) {
  const float alpha = g.alpha_pointer ? *g.alpha_pointer : g.alpha;
  const float beta = g.beta_pointer ? *g.beta_pointer : g.beta;
  for (int i = 0; i < g.batch; ++i)
    multiply_one(g, alpha, beta, g.a + i * g.stride_a, g.b + i * g.stride_b, g.c + i * g.stride_c);
}

}  // namespace ptxcpu
