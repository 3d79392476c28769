// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// How an op reaches the device. A launcher reads
//
//   Launch on(ctx, "adam");
//   adam_kernel<<<on.grid(n), Each::kThreads, 0, on.stream()>>>(op);
//   on.check();
//
// and does nothing else: no allocation, no synchronisation, no copy to the host.

#include "state.h"

namespace pwdice::cuda {

// Elementwise kernels: a thread takes kItems elements, one block apart, so that a warp's accesses are
// consecutive at any alignment of the views.
struct Each {
  static constexpr int kThreads = 256, kItems = 4, kChunk = kThreads * kItems;
};

// Calls body(i) for this thread's items of [0, n).
template <class Body>
__device__ __forceinline__ void for_each_item(int64_t n, Body body) {
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * Each::kChunk + threadIdx.x;
#pragma unroll
  for (int k = 0; k < Each::kItems; ++k) {
    const int64_t i = begin + k * Each::kThreads;
    if (i < n) body(i);
  }
}

// Calls body(i, j) for this thread's elements of a rows x cols matrix; 32-bit division where it suffices.
template <class Body>
__device__ __forceinline__ void for_each_element(int64_t rows, int64_t cols, Body body) {
  const int64_t total = rows * cols;
  const bool small = total <= UINT32_MAX;
  for_each_item(total, [&](int64_t at) {
    const int64_t i = small ? static_cast<uint32_t>(at) / static_cast<uint32_t>(cols) : at / cols;
    body(i, at - i * cols);
  });
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The y of a grid whose blocks stride over chunks of rows: enough to fill a device, below what y can be.
constexpr int64_t kGridChunks = 1024;
inline unsigned chunk_blocks(int64_t chunks) {
  return static_cast<unsigned>(chunks < kGridChunks ? chunks : kGridChunks);
}

// The launches of one op: its device is current while this lives.
class Launch {
 public:
  Launch(Context& ctx, const char* op) : ctx_(ctx), op_(op), scope_(ctx.cuda(), op) {
    require_no_error(ctx.cuda(), op);  // so that what check() finds is the launch's own
  }

  cudaStream_t stream() const { return ctx_.cuda().stream; }
  Context& ctx() const { return ctx_; }
  const char* op() const { return op_; }
  template <class T>
  T* scratch(int64_t count) const {
    return ctx_.scratch().take<T>(count, op_);
  }

  unsigned grid(int64_t items, int64_t per_block = Each::kChunk) const {
    const int64_t blocks = ceil_div(items, per_block);
    PWDICE_CHECK(blocks <= 0x7fffffff, "{}: {} items need more blocks than a grid has", op_, items);
    return static_cast<unsigned>(blocks);
  }

  // After every launch. Reports the launch itself, or with synchronise_launches also what the kernel did.
  void check() const {
    State& state = ctx_.cuda();
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess && state.synchronise_launches && !state.capturing) {
      error = cudaStreamSynchronize(state.stream);
    }
    if (error != cudaSuccess) raise(state, error, std::string(op_) + ": the launch");
  }

  // Dynamic shared memory beyond 48 KiB must be asked for by kernel.
  template <class Kernel>
  void allow_shared(Kernel* kernel, size_t bytes) const {
    if (bytes <= size_t{48} << 10) return;
    PWDICE_CUDA_CHECK(
        ctx_.cuda(),
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "{}: asking for {} bytes of shared memory", op_, bytes);
  }

 private:
  Context& ctx_;
  const char* op_;
  DeviceScope scope_;
};

}  // namespace pwdice::cuda
