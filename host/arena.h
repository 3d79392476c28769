// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "../kernels/memory.h"

namespace pwdice {

// Whose memory: that of the CPU or of one CUDA device. Contexts of the same place may share it.
struct Place {
  Backend backend = Backend::Cpu;
  int device = 0;
  bool operator==(const Place&) const = default;
};
Place place_of(const Context& ctx);
// Throws InvalidArgument when `what` lies elsewhere than where `function` runs: an op would follow a foreign pointer.
void check_place(std::string_view function, std::string_view what, Place memory, Place runs_on);

// A block of a Context's memory with an owner. The Context must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Context& ctx, size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Context* ctx_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// A Buffer of n values: tables over the data set, counters, indices.
template <class T>
class Array {
 public:
  Array() = default;
  Array(Context& ctx, int64_t n) : buffer_(ctx, static_cast<size_t>(n) * sizeof(T)), size_(n) {}

  int64_t size() const { return size_; }
  Vec<T> view() const { return {reinterpret_cast<T*>(buffer_.data()), size_}; }
  Mat<T> matrix(int64_t rows, int64_t cols) const {
    PWDICE_CHECK(rows * cols == size_, "array: {} values seen as {} x {}", size_, rows, cols);
    return {view().data, rows, cols};
  }

 private:
  Buffer buffer_;
  int64_t size_ = 0;
};

// Bump allocator for what lives as long as one step: activations, saved tensors, gradients on the way. It
// takes whole blocks from the Context while a step runs for the first time and keeps them; after reset() the
// same requests get the same addresses and nothing is allocated, so a step can be captured as a graph.
class Arena {
 public:
  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
  static constexpr size_t kBlockBytes = size_t{4} << 20;

  explicit Arena(Context& ctx, size_t limit_bytes = kNoLimit);

  void reserve(size_t bytes);  // have one block of at least this size
  void reset() { block_ = 0, used_ = 0; }

  // Contents undefined, aligned to 256 bytes. Throws OutOfMemory when the limit does not allow another block.
  void* take_bytes(size_t bytes);
  template <class T>
  Vec<T> take(int64_t n) {
    return {static_cast<T*>(take_bytes(static_cast<size_t>(n) * sizeof(T))), n};
  }
  Mat<float> matrix(int64_t rows, int64_t cols) { return {take<float>(rows * cols).data, rows, cols}; }

  size_t capacity() const { return capacity_; }  // bytes of all blocks

 private:
  friend class ArenaScope;
  void add_block(size_t bytes);

  Context& ctx_;
  size_t limit_, capacity_ = 0;
  std::vector<Buffer> blocks_;
  size_t block_ = 0, used_ = 0;  // next free byte: blocks_[block_] + used_
};

// Gives back what was taken after the scope began: the ping-pong buffers of a backward pass.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), block_(arena.block_), used_(arena.used_) {}
  ~ArenaScope() { arena_.block_ = block_, arena_.used_ = used_; }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  size_t block_, used_;
};

}  // namespace pwdice
