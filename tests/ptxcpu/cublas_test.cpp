// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// The cuBLAS stand-in, loaded as a program would: by name, with dlopen.
#include <cublas_v2.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "device_array.h"
#include "ptxcpu.h"

namespace {

class CublasTest : public testing::Test {
 protected:
  void SetUp() override {
    ptxcpu_reset();
    library_ = dlopen(std::getenv("PWDICE_CUBLAS_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    ASSERT_EQ(call<decltype(cublasCreate_v2)>("cublasCreate_v2")(&handle_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(call<decltype(cublasDestroy_v2)>("cublasDestroy_v2")(handle_), CUBLAS_STATUS_SUCCESS);
    dlclose(library_);
  }
  template <class Function>
  Function* call(const char* name) {
    auto* function = reinterpret_cast<Function*>(dlsym(library_, name));
    EXPECT_NE(function, nullptr) << name;
    return function;
  }
  void* library_ = nullptr;
  cublasHandle_t handle_ = nullptr;
};

// The header overloads cublasGemmEx, so its type must be written out.
using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                              const void*, const void*, cudaDataType, int, const void*, cudaDataType, int,
                              const void*, void*, cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);

constexpr int kM = 5, kN = 4, kK = 7;

float element(const std::vector<float>& matrix, int stride, bool transposed, int row, int column) {
  return transposed ? matrix[column + row * stride] : matrix[row + column * stride];
}

double expected(const std::vector<float>& a, bool ta, const std::vector<float>& b, bool tb, int i, int j) {
  double sum = 0;
  for (int l = 0; l < kK; ++l)
    sum += double(element(a, ta ? kK : kM, ta, i, l)) * element(b, tb ? kN : kK, tb, l, j);
  return sum;
}

TEST_F(CublasTest, RefusesTheStreamOfAnotherDevice) {
  auto* set_stream = call<decltype(cublasSetStream_v2)>("cublasSetStream_v2");
  ptxcpu_set_device_count(2);
  cudaStream_t here = nullptr, there = nullptr;
  ASSERT_EQ(cudaStreamCreate(&here), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&there), cudaSuccess);
  EXPECT_EQ(set_stream(handle_, there), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(set_stream(handle_, here), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaStreamDestroy(there), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(here), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  ptxcpu_set_device_count(1);
}

TEST_F(CublasTest, SgemmInAllTranspositions) {
  const auto a = random_floats(kM * kK, 1), b = random_floats(kK * kN, 2), c = random_floats(kM * kN, 3);
  DeviceArray<float> da(a), db(b), dc(c);
  auto* sgemm = call<decltype(cublasSgemm_v2)>("cublasSgemm_v2");
  const float alpha = 2, beta = 0.5f;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      dc.upload(c);
      ASSERT_EQ(sgemm(handle_, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, kM, kN, kK,
                      &alpha, da.get(), ta ? kK : kM, db.get(), tb ? kN : kK, &beta, dc.get(), kM),
                CUBLAS_STATUS_SUCCESS);
      const auto result = dc.download();
      for (int i = 0; i < kM; ++i)
        for (int j = 0; j < kN; ++j)
          ASSERT_NEAR(result[i + j * kM], 2 * expected(a, ta, b, tb, i, j) + 0.5 * c[i + j * kM], 1e-5);
    }
  }
}

TEST_F(CublasTest, BetaZeroIgnoresNan) {
  DeviceArray<float> da(random_floats(kM * kK, 1)), db(random_floats(kK * kN, 2)),
      dc(kM * kN);  // dc holds NaN
  const float alpha = 1, beta = 0;
  ASSERT_EQ(
      call<decltype(cublasSgemm_v2)>("cublasSgemm_v2")(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &alpha,
                                                       da.get(), kM, db.get(), kK, &beta, dc.get(), kM),
      CUBLAS_STATUS_SUCCESS);
  for (const float value : dc.download()) EXPECT_FALSE(std::isnan(value));
}

TEST_F(CublasTest, Tf32IsCoarserAndBatchesAreStrided) {
  const auto a = random_floats(2 * kM * kK, 4), b = random_floats(2 * kK * kN, 5);
  DeviceArray<float> da(a), db(b), dc(2 * kM * kN), exact(2 * kM * kN);
  auto* batched = call<decltype(cublasSgemmStridedBatched)>("cublasSgemmStridedBatched");
  const float alpha = 1, beta = 0;
  const auto run = [&](float* c) {
    return batched(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &alpha, da.get(), kM, kM * kK, db.get(), kK,
                   kK * kN, &beta, c, kM, kM * kN, 2);
  };
  ASSERT_EQ(run(exact.get()), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(call<decltype(cublasSetMathMode)>("cublasSetMathMode")(handle_, CUBLAS_TF32_TENSOR_OP_MATH),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(run(dc.get()), CUBLAS_STATUS_SUCCESS);
  const auto coarse = dc.download(), fine = exact.download();
  double worst = 0;
  for (size_t i = 0; i < coarse.size(); ++i) worst = std::max(worst, std::fabs(double(coarse[i]) - fine[i]));
  EXPECT_GT(worst, 1e-6);
  EXPECT_LT(worst, 1e-2);
  const std::vector<float> a1(a.begin() + kM * kK, a.end()), b1(b.begin() + kK * kN, b.end());
  EXPECT_NEAR(fine[kM * kN], expected(a1, false, b1, false, 0, 0), 1e-5);
}

TEST_F(CublasTest, JoinsACapture) {
  DeviceArray<float> da(std::vector<float>{2}), db(std::vector<float>{3}), dc(std::vector<float>{0});
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(call<decltype(cublasSetStream_v2)>("cublasSetStream_v2")(handle_, stream), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  const float alpha = 1, beta = 1;
  ASSERT_EQ(call<GemmEx>("cublasGemmEx")(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, da.get(),
                                         CUDA_R_32F, 1, db.get(), CUDA_R_32F, 1, &beta, dc.get(), CUDA_R_32F,
                                         1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(dc.download()[0], 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(dc.download()[0], 12);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CublasTest, BadArgumentsAreRefused) {
  DeviceArray<float> x(16);
  const float one = 1;
  auto* sgemm = call<decltype(cublasSgemm_v2)>("cublasSgemm_v2");
  EXPECT_EQ(sgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 4, 2, 2, &one, x.get(), 3, x.get(), 2, &one, x.get(), 4),
            CUBLAS_STATUS_INVALID_VALUE)
      << "lda below m";
  EXPECT_EQ(sgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, x.get(), 1, x.get(), 1, &one, x.get(), 1),
            CUBLAS_STATUS_NOT_INITIALIZED);
}

}  // namespace
