// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "arena.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pwdice {
namespace {

std::string text(Place place) {
  return place.backend == Backend::Cpu ? "the CPU" : "CUDA device " + std::to_string(place.device);
}

}  // namespace

Place place_of(const Context& ctx) {
  return ctx.on_gpu() ? Place{Backend::Cuda, ctx.options().device} : Place{};
}

void check_place(std::string_view function, std::string_view what, Place memory, Place runs_on) {
  if (memory == runs_on) return;
  fail(ErrorCode::InvalidArgument, "{}: {} is in the memory of {}, the Context runs on {}", function, what, text(memory),
       text(runs_on));
}

Buffer::Buffer(Context& ctx, size_t bytes)
    : ctx_(&ctx), data_(static_cast<std::byte*>(allocate(ctx, bytes))), bytes_(bytes) {}

Buffer::~Buffer() {
  if (ctx_ != nullptr) release(*ctx_, data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : ctx_(std::exchange(other.ctx_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(ctx_, other.ctx_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Arena::Arena(Context& ctx, size_t limit_bytes) : ctx_(ctx), limit_(limit_bytes) {}

void Arena::reserve(size_t bytes) {
  const auto fits = [bytes](const Buffer& block) { return block.bytes() >= bytes; };
  if (std::none_of(blocks_.begin(), blocks_.end(), fits)) add_block(bytes);
}

void* Arena::take_bytes(size_t bytes) {
  const size_t need = Scratch::rounded(bytes);
  while (block_ < blocks_.size() && need > blocks_[block_].bytes() - used_) ++block_, used_ = 0;
  if (block_ == blocks_.size()) add_block(std::max(need, kBlockBytes));
  std::byte* memory = blocks_[block_].data() + used_;
  used_ += need;
  return memory;
}

void Arena::add_block(size_t bytes) {
  const size_t size = Scratch::rounded(bytes);
  if (size > limit_ - capacity_) {
    fail(ErrorCode::OutOfMemory, "arena: a block of {} bytes on top of {} would pass the limit of {}", size,
         capacity_, limit_);
  }
  blocks_.emplace_back(ctx_, size);
  capacity_ += size;
}

}  // namespace pwdice
