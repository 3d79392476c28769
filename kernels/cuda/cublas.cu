// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <dlfcn.h>

#include <cstdlib>

#include "cublas.h"
#include "state.h"

namespace pwdice::cuda {
namespace {

// The part of the cuBLAS ABI that is used; stable since version 11, so no header of it is needed.
constexpr int kNoTranspose = 0, kTranspose = 1;
constexpr int kPedanticMath = 2, kTf32Math = 3;

// Fixed, so that a captured product needs no allocation of cuBLAS's own and always splits the same way.
constexpr size_t kWorkspaceBytes = size_t{8} << 20;

void* open_library() {
  if (const char* path = std::getenv("PWDICE_CUBLAS_LIBRARY"); path != nullptr && *path != 0) {
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  for (const char* name : {"libcublas.so.13", "libcublas.so.12"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

}  // namespace

struct CuBlas::Api {
  using Handle = void*;
  void* library;
  int (*create)(Handle*);
  int (*destroy)(Handle);
  int (*set_stream)(Handle, cudaStream_t);
  int (*set_workspace)(Handle, void*, size_t);
  int (*set_math_mode)(Handle, int);
  int (*sgemm)(Handle, int, int, int, int, int, const float*, const float*, int, const float*, int,
               const float*, float*, int);

  template <class F>
  void find(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(library, symbol));
    if (function == nullptr) fail(ErrorCode::Unsupported, "cublas: the library has no function {}", symbol);
  }

  explicit Api(void* opened) : library(opened) {
    find(create, "cublasCreate_v2");
    find(destroy, "cublasDestroy_v2");
    find(set_stream, "cublasSetStream_v2");
    find(set_workspace, "cublasSetWorkspace_v2");
    find(set_math_mode, "cublasSetMathMode");
    find(sgemm, "cublasSgemm_v2");
  }
};

CuBlas::CuBlas(State& state) : state_(state) {
  void* library = open_library();
  if (library == nullptr) {
    const char* reason = dlerror();
    fail(ErrorCode::Unsupported, "cublas: the library cannot be loaded ({}); use GemmLibrary::Cutlass",
         reason == nullptr ? "no reason given" : reason);
  }
  api_ = std::make_unique<Api>(library);
  const DeviceScope scope(state.device);  // a handle belongs to the device that is current when it is made
  workspace_ = allocate(state, kWorkspaceBytes);
  const bool ready = api_->create(&handle_) == 0 && api_->set_stream(handle_, state.stream) == 0 &&
                     api_->set_workspace(handle_, workspace_, kWorkspaceBytes) == 0;
  if (!ready) {
    cudaGetLastError();  // of a CUDA call within cuBLAS
    if (handle_ != nullptr) api_->destroy(handle_);
    release(state, workspace_);
    fail(ErrorCode::Unsupported, "cublas: no handle could be made on device {}", state.device);
  }
}

// The library stays loaded: its own threads and exit handlers may outlive us.
CuBlas::~CuBlas() {
  const DeviceScope scope(state_.device);
  api_->destroy(handle_);
  release(state_, workspace_);
}

void CuBlas::multiply(const Product& p, bool tf32, const char* op) {
  constexpr int64_t kLargest = 0x7fffffff;  // its integers
  for (const int64_t extent : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) {
    PWDICE_CHECK(extent <= kLargest,
                 "{}: a product of {} x {} x {} or one of its strides is too large for cuBLAS", op, p.m, p.n,
                 p.k);
  }
  const float one = 1.f, zero = 0.f;
  // cuBLAS is column-major: the row-major product is c^T = op(b)^T op(a)^T.
  const int mode = api_->set_math_mode(handle_, tf32 ? kTf32Math : kPedanticMath);
  const int status = mode != 0 ? mode
                               : api_->sgemm(handle_, p.transpose_b ? kTranspose : kNoTranspose,
                                             p.transpose_a ? kTranspose : kNoTranspose, static_cast<int>(p.n),
                                             static_cast<int>(p.m), static_cast<int>(p.k), &one, p.b,
                                             static_cast<int>(p.ldb), p.a, static_cast<int>(p.lda), &zero,
                                             p.c, static_cast<int>(p.ldc));
  if (status != 0) {
    cudaGetLastError();  // of a CUDA call within cuBLAS
    fail(ErrorCode::Internal, "{}: cuBLAS answered {} to a product of {} x {} x {}", op, status, p.m, p.n,
         p.k);
  }
}

}  // namespace pwdice::cuda
