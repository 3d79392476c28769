// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// CUTLASS knows the fragment layouts of the device: its GEMMs are an independent check of ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cutlass_gemm.h"
#include "device_array.h"
#include "ptxcpu.h"

namespace {

struct Problem {
  int m, n, k;
};

// Largest error of relu(a b + bias) or a b, relative to the sum of magnitudes.
double largest_error(const Problem& p, const std::vector<float>& a, const std::vector<float>& b,
                     const std::vector<float>* bias, const std::vector<float>& d) {
  double worst = 0;
  for (int i = 0; i < p.m; ++i) {
    for (int j = 0; j < p.n; ++j) {
      double sum = bias ? (*bias)[j] : 0.0, size = 1;
      for (int l = 0; l < p.k; ++l) {
        sum += double(a[size_t(i) * p.k + l]) * b[size_t(j) * p.k + l];
        size += std::fabs(double(a[size_t(i) * p.k + l]) * b[size_t(j) * p.k + l]);
      }
      if (bias) sum = std::max(sum, 0.0);
      worst = std::max(worst, std::fabs(sum - d[size_t(i) * p.n + j]) / size);
    }
  }
  return worst;
}

class CutlassTest : public testing::TestWithParam<Problem> {
 protected:
  void SetUp() override { ptxcpu_reset(); }
};

INSTANTIATE_TEST_SUITE_P(Shapes, CutlassTest,
                         testing::Values(Problem{128, 64, 32}, Problem{131, 68, 36}, Problem{5, 4, 8},
                                         Problem{64, 132, 100}));

TEST_P(CutlassTest, Simt) {
  const Problem p = GetParam();
  const auto a = random_floats(size_t(p.m) * p.k, 1), b = random_floats(size_t(p.n) * p.k, 2);
  DeviceArray<float> da(a), db(b), dd(size_t(p.m) * p.n);
  ASSERT_EQ(cutlass_gemm::simt(p.m, p.n, p.k, da.get(), db.get(), dd.get(), nullptr), 0)
      << ptxcpu_last_report();
  ASSERT_EQ(cudaDeviceSynchronize(), 0) << ptxcpu_last_report();
  EXPECT_LT(largest_error(p, a, b, nullptr, dd.download()), 1e-6);
}

TEST_P(CutlassTest, Tf32BiasRelu) {
  const Problem p = GetParam();
  const auto a = random_floats(size_t(p.m) * p.k, 3), b = random_floats(size_t(p.n) * p.k, 4),
             bias = random_floats(p.n, 5);
  DeviceArray<float> da(a), db(b), dbias(bias), dd(size_t(p.m) * p.n);
  ASSERT_EQ(cutlass_gemm::tf32_bias_relu(p.m, p.n, p.k, da.get(), db.get(), dbias.get(), dd.get(), nullptr),
            0)
      << ptxcpu_last_report();
  ASSERT_EQ(cudaDeviceSynchronize(), 0) << ptxcpu_last_report();
  const double error = largest_error(p, a, b, &bias, dd.download());
  EXPECT_LT(error, 1e-3);
  EXPECT_GT(error, 1e-6) << "TF32 rounds its inputs to 11 bits";
}

}  // namespace
