// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Thrust and CUB run unchanged, also with blocks started in reverse: their scans poll earlier blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "device_array.h"
#include "library_calls.h"
#include "ptxcpu.h"

namespace {

constexpr int kSizes[] = {1, 31, 1000, 20011};

class LibraryTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ptxcpu_reset();
    ptxcpu_set_order(GetParam(), 3);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    cudaStreamDestroy(stream_);
    ptxcpu_set_order("forward", 1);
    ptxcpu_reset();
  }
  cudaStream_t stream_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Orders, LibraryTest, testing::Values("forward", "reversed"));

TEST_P(LibraryTest, RadixSortPairs) {
  for (const int n : kSizes) {
    std::vector<uint32_t> keys(n);
    std::mt19937 generator(n);
    for (uint32_t& key : keys) key = generator();
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    DeviceArray<uint32_t> in(keys), out(n);
    DeviceArray<int> values(order), sorted(n);
    ASSERT_EQ(library_calls::sort_pairs(in.get(), out.get(), values.get(), sorted.get(), n, stream_), 0)
        << ptxcpu_last_report();
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    EXPECT_EQ(sorted.download(), order) << n;
  }
}

TEST_P(LibraryTest, SortFloats) {
  for (const int n : kSizes) {
    std::vector<float> values = random_floats(n, n);
    DeviceArray<float> in(values), out(n), in_place(values);
    ASSERT_EQ(library_calls::sort_floats(in.get(), out.get(), n, stream_), 0) << ptxcpu_last_report();
    ASSERT_EQ(library_calls::thrust_sort(in_place.get(), n, stream_), 0) << ptxcpu_last_report();
    std::sort(values.begin(), values.end());
    EXPECT_EQ(out.download(), values) << n;
    EXPECT_EQ(in_place.download(), values) << n;
  }
}

TEST_P(LibraryTest, Scans) {
  for (const int n : kSizes) {
    std::vector<int> ones(n);
    for (int i = 0; i < n; ++i) ones[i] = i % 7 - 2;
    std::vector<float> floats(ones.begin(), ones.end());
    DeviceArray<int> in(ones), out(n);
    DeviceArray<float> float_in(floats), float_out(n);
    ASSERT_EQ(library_calls::inclusive_sum(in.get(), out.get(), n, stream_), 0) << ptxcpu_last_report();
    ASSERT_EQ(library_calls::exclusive_sum(float_in.get(), float_out.get(), n, stream_), 0)
        << ptxcpu_last_report();
    std::vector<int> expected(n);
    std::partial_sum(ones.begin(), ones.end(), expected.begin());
    EXPECT_EQ(out.download(), expected) << n;
    std::vector<float> exclusive(n);
    std::exclusive_scan(floats.begin(), floats.end(), exclusive.begin(), 0.0f);
    EXPECT_EQ(float_out.download(), exclusive) << n;
  }
}

TEST_P(LibraryTest, Reductions) {
  for (const int n : kSizes) {
    const std::vector<float> values = random_floats(n, n);
    DeviceArray<float> in(values), out(1);
    ASSERT_EQ(library_calls::reduce_sum(in.get(), out.get(), n, stream_), 0) << ptxcpu_last_report();
    EXPECT_NEAR(out.download()[0], std::accumulate(values.begin(), values.end(), 0.0), 1e-3);
    ASSERT_EQ(library_calls::reduce_max(in.get(), out.get(), n, stream_), 0) << ptxcpu_last_report();
    EXPECT_EQ(out.download()[0], *std::max_element(values.begin(), values.end()));
  }
}

TEST_P(LibraryTest, SelectFlagged) {
  for (const int n : kSizes) {
    std::vector<int> values(n), expected;
    std::vector<uint8_t> flags(n);
    for (int i = 0; i < n; ++i) {
      values[i] = i;
      flags[i] = i % 3 == 0;
      if (flags[i]) expected.push_back(i);
    }
    DeviceArray<int> in(values), out(n), count(1);
    DeviceArray<uint8_t> device_flags(flags);
    ASSERT_EQ(library_calls::select_flagged(in.get(), device_flags.get(), out.get(), count.get(), n, stream_),
              0)
        << ptxcpu_last_report();
    ASSERT_EQ(count.download()[0], int(expected.size()));
    std::vector<int> selected = out.download();
    selected.resize(expected.size());
    EXPECT_EQ(selected, expected);
  }
}

TEST_P(LibraryTest, SequenceAndGather) {
  for (const int n : kSizes) {
    const std::vector<float> values = random_floats(size_t(2) * n + 3, n);
    DeviceArray<int> map(n);
    DeviceArray<float> source(values), out(n);
    ASSERT_EQ(library_calls::thrust_sequence(map.get(), n, stream_), 0) << ptxcpu_last_report();
    ASSERT_EQ(library_calls::thrust_gather(map.get(), source.get(), out.get(), n, stream_), 0)
        << ptxcpu_last_report();
    const std::vector<float> gathered = out.download();
    for (int i = 0; i < n; ++i) ASSERT_EQ(gathered[i], values[3 + 2 * i]);
  }
}

}  // namespace
