// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "error.h"
#include "view.h"

struct CUstream_st;  // cudaStream_t is a pointer to this; no CUDA header needed above kernels/cuda

namespace pwdice {

namespace cpu {
class ThreadPool;
}
namespace cuda {
struct State;
struct StateDeleter {
  void operator()(State*) const noexcept;
};
}  // namespace cuda

enum class Backend { Cpu, Cuda };

// Arithmetic of the score tiles on a GPU. Fp32 is exact and the default; the others use tensor cores.
enum class ScorePrecision { Fp32, Tf32, Bf16 };

// What multiplies the matrices of the MLP layers on a GPU; the CPU backend has one implementation.
enum class GemmLibrary { Cutlass, CuBlas };

// Working memory of the ops: one block, given out from the front and given back in reverse order.
class Scratch {
 public:
  Scratch() = default;
  Scratch(std::byte* base, size_t bytes, size_t peak = 0) : base_(base), capacity_(bytes), peak_(peak) {}

  // Throws OutOfMemory, naming the op and the numbers, when the block is too small: never a hidden allocation.
  template <class T>
  T* take(int64_t count, const char* op) {
    return static_cast<T*>(take_bytes(static_cast<size_t>(count) * sizeof(T), op));
  }
  void* take_bytes(size_t bytes, const char* op);
  size_t capacity() const { return capacity_; }
  size_t used() const { return used_; }
  size_t peak() const { return peak_; }

  static constexpr size_t kAlign = 256;
  static constexpr size_t rounded(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

 private:
  friend class ScratchScope;
  std::byte* base_ = nullptr;
  size_t capacity_ = 0, used_ = 0, peak_ = 0;
};

// Everything taken after the scope began is given back when it ends.
class ScratchScope {
 public:
  explicit ScratchScope(Scratch& scratch) : scratch_(scratch), mark_(scratch.used_) {}
  ~ScratchScope() { scratch_.used_ = mark_; }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

 private:
  Scratch& scratch_;
  size_t mark_;
};

struct ContextOptions {
  Backend backend = Backend::Cpu;
  int threads = 0;                        // CPU; 0 = all cores the process may use
  size_t scratch_bytes = size_t{64} << 20;
  int device = 0;                         // CUDA
  CUstream_st* stream = nullptr;          // CUDA: the caller's stream; nullptr = the Context makes its own
  ScorePrecision score_precision = ScorePrecision::Fp32;
  GemmLibrary gemm = GemmLibrary::Cutlass;
  bool synchronise_launches = false;      // CUDA: pin an asynchronous fault to its kernel
};

// Where and how ops run. Passed to every op, never global; used by one thread at a time.
class Context {
 public:
  explicit Context(const ContextOptions& options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  bool on_gpu() const { return options_.backend == Backend::Cuda; }
  const ContextOptions& options() const { return options_; }
  int threads() const;
  Scratch& scratch() { return scratch_; }
  // Sees to at least so much scratch: ctx.reserve_scratch(infonce_scratch_bytes(ctx, n, d)). Between ops, and before the
  // first step is captured, whose graph keeps the addresses. Waits for the work of this Context.
  void reserve_scratch(size_t bytes);
  cpu::ThreadPool& pool() { return *pool_; }
  cuda::State& cuda() { return *cuda_; }

  // Waits for the work of this Context alone.
  void synchronise();

 private:
  friend class CapturedStep;
  ContextOptions options_;
  std::unique_ptr<cpu::ThreadPool> pool_;
  std::unique_ptr<cuda::State, cuda::StateDeleter> cuda_;
  std::byte* scratch_memory_ = nullptr;
  bool scratch_was_captured_ = false;  // and a graph may keep its address
  Scratch scratch_;
};

// Why the CUDA backend can or cannot be used here, in one sentence; never throws.
struct CudaAvailability {
  bool available = false;
  std::string reason;
};
CudaAvailability cuda_availability();

// Name of the SIMD target the CPU backend chose, for example "AVX2". Throws Unsupported on a processor that has none
// of those in the build, as a Context for the CPU does.
const char* cpu_target();

}  // namespace pwdice
