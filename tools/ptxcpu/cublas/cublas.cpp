// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// A stand-in for libcublas, loaded with dlopen: the calls the project makes, computed on the CPU in
// the order of the handle's stream. While the stream captures, a product joins the graph.
#include <cublas_v2.h>

#include <cstring>
#include <vector>

#include "gemm.h"
#include "ptxcpu.h"

struct cublasContext {
  int device = 0;  // that was current when the handle was made
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
};

namespace {

using ptxcpu::Gemm;

cublasStatus_t to_status(int cuda_error) {
  return cuda_error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

bool is_valid(const Gemm& g) {
  const int a_rows = g.transpose_a ? g.k : g.m, b_rows = g.transpose_b ? g.n : g.k;
  if (g.m < 0 || g.n < 0 || g.k < 0 || g.batch < 0) return false;
  return g.lda >= (a_rows > 1 ? a_rows : 1) && g.ldb >= (b_rows > 1 ? b_rows : 1) &&
         g.ldc >= (g.m > 1 ? g.m : 1);
}

void run_gemm(void* data) {
  Gemm gemm;
  std::memcpy(&gemm, data, sizeof gemm);
  ptxcpu::multiply(gemm);
}

// Scalars in host memory are read at the call, those in device memory when the product runs.
cublasStatus_t submit(cublasHandle_t handle, Gemm gemm, const float* alpha, const float* beta) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!alpha || !beta || !is_valid(gemm)) return CUBLAS_STATUS_INVALID_VALUE;
  constexpr int kModes = 0xf;  // the bits above are flags
  gemm.tf32 = (handle->math & kModes) == CUBLAS_TF32_TENSOR_OP_MATH;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_HOST) {
    gemm.alpha = *alpha;
    gemm.beta = *beta;
  } else {
    gemm.alpha_pointer = alpha;
    gemm.beta_pointer = beta;
  }
  return to_status(ptxcpu_enqueue(handle->stream, run_gemm, &gemm, sizeof gemm));
}

Gemm describe(cublasOperation_t a_operation, cublasOperation_t b_operation, int m, int n, int k,
              const float* a, int lda, const float* b, int ldb, float* c, int ldc) {
  Gemm gemm;
  gemm.transpose_a = a_operation != CUBLAS_OP_N;
  gemm.transpose_b = b_operation != CUBLAS_OP_N;
  gemm.m = m, gemm.n = n, gemm.k = k;
  gemm.a = a, gemm.b = b, gemm.c = c;
  gemm.lda = lda, gemm.ldb = ldb, gemm.ldc = ldc;
  return gemm;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasContext{.device = device};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  int device = 0;
  if (cudaStreamGetDevice(stream, &device) != cudaSuccess || device != handle->device)
    return CUBLAS_STATUS_INVALID_VALUE;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void*, size_t) {
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "the operation succeeded";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the handle was not created";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an argument is invalid";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the operation is not supported";
    default:
      return "the operation failed";
  }
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t a_operation,
                              cublasOperation_t b_operation, int m, int n, int k, const float* alpha,
                              const float* a, int lda, const float* b, int ldb, const float* beta, float* c,
                              int ldc) {
  return submit(handle, describe(a_operation, b_operation, m, n, k, a, lda, b, ldb, c, ldc), alpha, beta);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_operation,
                                         cublasOperation_t b_operation, int m, int n, int k,
                                         const float* alpha, const float* a, int lda, long long stride_a,
                                         const float* b, int ldb, long long stride_b, const float* beta,
                                         float* c, int ldc, long long stride_c, int batch) {
  Gemm gemm = describe(a_operation, b_operation, m, n, k, a, lda, b, ldb, c, ldc);
  gemm.batch = batch;
  gemm.stride_a = stride_a, gemm.stride_b = stride_b, gemm.stride_c = stride_c;
  return submit(handle, gemm, alpha, beta);
}

// Float matrices only; the compute type may allow TF32.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_operation,
                            cublasOperation_t b_operation, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType a_type, int lda, const void* b, cudaDataType b_type,
                            int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  const bool floats = a_type == CUDA_R_32F && b_type == CUDA_R_32F && c_type == CUDA_R_32F;
  const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (!floats || !(tf32 || compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const cublasMath_t saved = handle->math;
  if (tf32) handle->math = CUBLAS_TF32_TENSOR_OP_MATH;
  const cublasStatus_t status =
      submit(handle,
             describe(a_operation, b_operation, m, n, k, static_cast<const float*>(a), lda,
                      static_cast<const float*>(b), ldb, static_cast<float*>(c), ldc),
             static_cast<const float*>(alpha), static_cast<const float*>(beta));
  handle->math = saved;
  return status;
}
}
