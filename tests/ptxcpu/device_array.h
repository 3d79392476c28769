// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// Device memory with the contents of a vector, for tests.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t n) : size_(n) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), n * sizeof(T)), 0);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { upload(values); }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }
  size_t size() const { return size_; }

  void upload(const std::vector<T>& values) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), 0);
  }
  std::vector<T> download() const {
    std::vector<T> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), 0);
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

inline std::vector<float> random_floats(size_t n, unsigned seed = 1, float low = -1, float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(n);
  for (float& value : values) value = distribution(generator);
  return values;
}
