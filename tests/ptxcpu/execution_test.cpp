// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Translated kernels compute what the device would: bit for bit where PTX defines the bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "device_array.h"
#include "kernels.h"
#include "ptxcpu.h"

namespace {

class ExecutionTest : public testing::Test {
 protected:
  void SetUp() override { ptxcpu_reset(); }
  void expect_success() { ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << ptxcpu_last_report(); }
};

uint16_t to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
float from_bf16(uint16_t value) {
  const uint32_t bits = uint32_t(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}
float round_tf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x1000) & 0xffffe000u;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// a (m, k) times the transpose of b (n, k), compared with c (m, n).
double largest_difference(const std::vector<float>& a, const std::vector<float>& b,
                          const std::vector<float>& c, int m, int n, int k) {
  double worst = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += double(a[i * k + l]) * b[j * k + l];
      worst = std::max(worst, std::fabs(sum - c[i * n + j]));
    }
  }
  return worst;
}

TEST_F(ExecutionTest, SaxpyIsFusedAndExact) {
  for (const int n : {1, 127, 128, 1000}) {
    const auto x = random_floats(n, 1), y = random_floats(n, 2);
    DeviceArray<float> dx(x), dy(y);
    kernels::saxpy(n, 2.5f, dx.get(), dy.get(), nullptr);
    expect_success();
    const auto result = dy.download();
    for (int i = 0; i < n; ++i) ASSERT_EQ(result[i], std::fma(2.5f, x[i], y[i]));
  }
}

TEST_F(ExecutionTest, OperationsAgreeWithTheHostInEveryBit) {
  constexpr int kCases = 4000;
  DeviceArray<uint64_t> out(size_t(kCases) * kernels::kOperations);
  kernels::device_operations(out.get(), kCases, nullptr);
  expect_success();
  const auto results = out.download();
  for (int i = 0; i < kCases; ++i) {
    uint64_t expected[kernels::kOperations];
    kernels::host_operations(i, expected);
    for (int k = 0; k < kernels::kOperations; ++k)
      ASSERT_EQ(results[size_t(i) * kernels::kOperations + k], expected[k])
          << "operation " << k << ", case " << i;
  }
}

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

uint32_t multiply_toward_zero(uint32_t x, uint32_t y) {
  const auto one_to_two = [](uint32_t bits) {
    bits = (bits & 0x7fffff) | 0x3f800000;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return double(value);
  };
  const double exact = one_to_two(x) * one_to_two(y);
  float rounded = float(exact);
  if (double(rounded) > exact) rounded = std::nextafter(rounded, 0.0f);
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return bits;
}

TEST_F(ExecutionTest, Intrinsics) {
  constexpr int kCases = 2000;
  DeviceArray<uint32_t> out(size_t(kCases) * kernels::kIntrinsics);
  kernels::device_intrinsics(out.get(), kCases, nullptr);
  expect_success();
  const auto results = out.download();
  for (int i = 0; i < kCases; ++i) {
    const auto x = uint32_t(mix(i)), y = uint32_t(mix(i + 777));
    const uint32_t shifted = x >> (y & 31);
    uint32_t reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= ((x >> bit) & 1) << (31 - bit);
    const auto byte = [](uint32_t word, int index) { return (word >> (8 * index)) & 255; };
    const int xa = int(x >> 1), ya = int(y >> 1);
    const uint32_t expected[kernels::kIntrinsics] = {
        uint32_t(__builtin_popcount(x)),
        shifted ? uint32_t(__builtin_clz(shifted)) : 32,
        uint32_t(__builtin_ffs(int(x))),
        reversed,
        byte(y, 1) | byte(x, 1) << 8 | byte(y, 3) << 16 | byte(x, 3) << 24,
        (y & 31) ? (y << (y & 31)) | (x >> (32 - (y & 31))) : y,
        (x & 31) ? (x >> (x & 31)) | (y << (32 - (x & 31))) : x,
        uint32_t((uint64_t(x) * y) >> 32),
        uint32_t((int64_t(int(x)) * int(y)) >> 32),
        uint32_t(std::abs(int64_t(xa) - ya) + 5),
        (x & 0xffffff) * (y & 0xff),
        multiply_toward_zero(x, y)};
    for (int k = 0; k < kernels::kIntrinsics; ++k)
      ASSERT_EQ(results[size_t(i) * kernels::kIntrinsics + k], expected[k])
          << "intrinsic " << k << ", case " << i;
  }
}

TEST_F(ExecutionTest, MathFunctionsAreWithinTheirBounds) {
  constexpr int kCases = 3000;
  const auto x = random_floats(kCases, 3, -20, 20);
  DeviceArray<float> dx(x), out(size_t(kCases) * kernels::kFunctions);
  kernels::math_functions(dx.get(), out.get(), kCases, nullptr);
  expect_success();
  const auto results = out.download();
  // Units in the last place the programming guide allows, rounded up.
  constexpr double kBounds[kernels::kFunctions] = {2.5, 1.5, 2.5, 1.5, 2.5, 2.5, 8.5, 2.5, 0.51, 0.51};
  for (int i = 0; i < kCases; ++i) {
    const double a = x[i], p = std::fabs(x[i]) + 1e-3f;
    const double expected[kernels::kFunctions] = {
        std::exp(a), std::log(p),      std::tanh(a), std::log1p(p), 1 / std::sqrt(p),
        std::sin(a), std::pow(p, 1.5), std::erf(a),  std::log(p),   std::pow(p, 1.5)};
    for (int k = 0; k < kernels::kFunctions; ++k) {
      const float rounded = std::fabs(float(expected[k]));
      const double ulp = std::nextafter(rounded, std::numeric_limits<float>::infinity()) - rounded;
      const double slack = k == 5 ? 2e-7 : 0;  // sinf is bounded absolutely near its zeros
      ASSERT_LE(std::fabs(results[size_t(i) * kernels::kFunctions + k] - expected[k]),
                kBounds[k] * ulp + slack)
          << "function " << k << " of " << a;
    }
  }
}

TEST_F(ExecutionTest, RowLogsumexp) {
  for (const auto [m, n] : {std::pair{128, 64}, {130, 65}, {1, 1}, {7, 200}}) {
    constexpr int kWidth = kernels::kWidth;
    const auto q = random_floats(size_t(m) * kWidth, 4), k = random_floats(size_t(n) * kWidth, 5);
    DeviceArray<float> dq(q), dk(k), lse(m);
    kernels::row_lse(dq.get(), dk.get(), lse.get(), m, n, 5.0f, nullptr);
    expect_success();
    const auto result = lse.download();
    for (int i = 0; i < m; ++i) {
      std::vector<double> scores(n);
      for (int j = 0; j < n; ++j)
        for (int d = 0; d < kWidth; ++d) scores[j] += 5.0 * q[i * kWidth + d] * k[j * kWidth + d];
      const double top = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (const double score : scores) sum += std::exp(score - top);
      ASSERT_NEAR(result[i], top + std::log(sum), 2e-5);
    }
  }
}

TEST_F(ExecutionTest, TensorCoresTf32) {
  constexpr int kDepth = 64;
  auto a = random_floats(16 * kDepth, 6), b = random_floats(8 * kDepth, 7);
  DeviceArray<float> da(a), db(b), dc(16 * 8);
  kernels::mma_tf32(da.get(), db.get(), dc.get(), kDepth, nullptr);
  expect_success();
  std::transform(a.begin(), a.end(), a.begin(), round_tf32);
  std::transform(b.begin(), b.end(), b.begin(), round_tf32);
  EXPECT_LT(largest_difference(a, b, dc.download(), 16, 8, kDepth), 1e-5);
}

TEST_F(ExecutionTest, TensorCoresBf16WithAsyncCopies) {
  constexpr int kDepth = 96;
  auto a = random_floats(16 * kDepth, 8), b = random_floats(8 * kDepth, 9);
  std::vector<uint16_t> ha(a.size()), hb(b.size());
  std::transform(a.begin(), a.end(), ha.begin(), to_bf16);
  std::transform(b.begin(), b.end(), hb.begin(), to_bf16);
  DeviceArray<uint16_t> da(ha), db(hb);
  DeviceArray<float> dc(16 * 8);
  kernels::mma_bf16_ldmatrix(da.get(), db.get(), dc.get(), kDepth, nullptr);
  expect_success();
  std::transform(ha.begin(), ha.end(), a.begin(), from_bf16);
  std::transform(hb.begin(), hb.end(), b.begin(), from_bf16);
  EXPECT_LT(largest_difference(a, b, dc.download(), 16, 8, kDepth), 1e-5);
}

TEST_F(ExecutionTest, WmmaF16) {
  constexpr int kDepth = 32;
  std::vector<float> a(16 * kDepth), b(16 * kDepth);
  std::vector<uint16_t> ha(a.size()), hb(b.size());
  const uint16_t halves[] = {0x0000, 0x3c00, 0xbc00, 0x3800};  // 0, 1, -1, 1/2
  const float values[] = {0, 1, -1, 0.5f};
  for (size_t i = 0; i < a.size(); ++i) {
    ha[i] = halves[mix(i) % 4], a[i] = values[mix(i) % 4];
    hb[i] = halves[mix(i + 5000) % 4], b[i] = values[mix(i + 5000) % 4];
  }
  DeviceArray<uint16_t> da(ha), db(hb);
  DeviceArray<float> dc(16 * 16);
  kernels::wmma_f16(da.get(), db.get(), dc.get(), kDepth, nullptr);
  expect_success();
  EXPECT_EQ(largest_difference(a, b, dc.download(), 16, 16, kDepth), 0);
}

TEST_F(ExecutionTest, LastBlockAddsThePartialSums) {
  const auto x = random_floats(5000, 10, 0, 1);
  DeviceArray<float> dx(x), partial(8), sum(1);
  for (int repeat = 0; repeat < 2; ++repeat) {  // the ticket must have wrapped to zero
    kernels::ticket_sum(dx.get(), 5000, partial.get(), sum.get(), nullptr);
    expect_success();
    double expected = 0;
    for (const float value : x) expected += value;
    EXPECT_NEAR(sum.download()[0], expected, 1e-2);
  }
}

TEST_F(ExecutionTest, WarpOperations) {
  std::vector<uint32_t> in(32);
  for (int i = 0; i < 32; ++i) in[i] = uint32_t(mix(i)) >> 8;
  DeviceArray<uint32_t> din(in), out(128);
  kernels::warp_operations(din.get(), out.get(), nullptr);
  expect_success();
  const auto result = out.download();
  uint32_t ballot = 0, sum = 0;
  for (int i = 0; i < 32; ++i) ballot |= (in[i] & 1) << i, sum += in[i];
  const uint32_t largest = *std::max_element(in.begin(), in.end());
  for (int lane = 0; lane < 32; ++lane) {
    const uint32_t down = in[lane % 16 + 3 < 16 ? lane + 3 : lane], up = in[lane >= 2 ? lane - 2 : lane];
    uint32_t same = 0;
    for (int i = 0; i < 32; ++i) same |= uint32_t(in[i] % 4 == in[lane] % 4) << i;
    EXPECT_EQ(result[4 * lane], down + up);
    EXPECT_EQ(result[4 * lane + 1], ballot);
    EXPECT_EQ(result[4 * lane + 2], same);
    EXPECT_EQ(result[4 * lane + 3], sum ^ largest);
  }
}

TEST_F(ExecutionTest, ResultsDoNotDependOnTheOrderOfThreads) {
  const auto q = random_floats(200 * kernels::kWidth, 11), k = random_floats(100 * kernels::kWidth, 12);
  DeviceArray<float> dq(q), dk(k), lse(200);
  std::vector<std::vector<float>> results;
  for (const char* order : {"forward", "reversed", "shuffled"}) {
    ptxcpu_set_order(order, 5);
    kernels::row_lse(dq.get(), dk.get(), lse.get(), 200, 100, 3.0f, nullptr);
    expect_success();
    results.push_back(lse.download());
  }
  ptxcpu_set_order("forward", 1);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
