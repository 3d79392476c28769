// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "op_case.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "../kernels/memory.h"
#include "simd_targets.h"

namespace pwdice::test {
namespace {

constexpr size_t kFence = 256;  // bytes on either side of a tensor
constexpr unsigned char kCanary = 0xC5;
constexpr unsigned char kPoison = 0xFF;  // every float and double of these bytes is a NaN

bool gpu_required() {
  const char* value = std::getenv("PWDICE_REQUIRE_GPU");
  return value != nullptr && std::string(value) == "1";
}

// PWDICE_TEST_TARGET=AVX2: every test of the process on that target or a lesser one, as on a CPU that has no better. A
// machine with AVX-512 would otherwise leave the other half of the CPU backend untested.
class TestTarget : public testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv("PWDICE_TEST_TARGET");
    if (name == nullptr) return;
    if (std::string(cpu_target()) == name) GTEST_SKIP() << name << " is this machine's best, the other tests run on it";
    for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
      if (std::string(hwy::TargetName(targets & -targets)) == name) return choose_targets(targets);
    }
    GTEST_SKIP() << "this machine has no " << name;
  }
};
const testing::Environment* const test_target = testing::AddGlobalTestEnvironment(new TestTarget);

}  // namespace

std::vector<Backend> test_backends() {
  std::vector<Backend> backends{Backend::Cpu};
  if (gpu_required() || cuda_availability().available) backends.push_back(Backend::Cuda);
  return backends;
}

std::vector<Backend> large_test_backends() {
  std::vector<Backend> backends{Backend::Cpu};
  if (gpu_required()) backends.push_back(Backend::Cuda);
  return backends;
}

std::string backend_name(const testing::TestParamInfo<Backend>& info) {
  return info.param == Backend::Cpu ? "Cpu" : "Cuda";
}

const Outputs::Item& Outputs::find(const std::string& name) const {
  for (const Item& item : items) {
    if (item.name == name) return item;
  }
  throw std::logic_error("the case has no output named " + name);
}

OpRun::~OpRun() {
  for (Block& block : blocks_) release(ctx, block.memory);
}

Mat<const float> OpRun::in(const std::vector<float>& host, int64_t rows, int64_t cols, int64_t stride) {
  EXPECT_EQ(static_cast<int64_t>(host.size()), rows * cols) << "a test input has the wrong size";
  if (stride == 0) stride = cols;
  const void* p = add("input", Role::In, sizeof(float), host.data(), {rows, cols, stride});
  return {static_cast<const float*>(p), rows, cols, stride};
}

Mat<float> OpRun::out(const std::string& name, int64_t rows, int64_t cols, int64_t stride) {
  if (stride == 0) stride = cols;
  void* p = add(name, Role::Out, sizeof(float), nullptr, {rows, cols, stride});
  return {static_cast<float*>(p), rows, cols, stride};
}

Mat<float> OpRun::in_out(const std::string& name, const std::vector<float>& host, int64_t rows,
                         int64_t cols) {
  EXPECT_EQ(static_cast<int64_t>(host.size()), rows * cols) << "a test input has the wrong size";
  void* p = add(name, Role::InOut, sizeof(float), host.data(), {rows, cols, cols});
  return {static_cast<float*>(p), rows, cols, cols};
}

void* OpRun::add(const std::string& name, Role role, size_t element, const void* host, Shape shape) {
  const size_t span = static_cast<size_t>(shape.rows * shape.stride) * element;
  const size_t row = static_cast<size_t>(shape.cols) * element;
  const size_t step = static_cast<size_t>(shape.stride) * element;
  Block block{name, role, element, shape, kFence + static_cast<size_t>(shift_) * element, nullptr, {}};
  block.image.assign(block.offset + span + kFence, kCanary);
  if (role == Role::In) std::memset(block.image.data() + block.offset, kPoison, span);  // padding
  for (int64_t i = 0; row > 0 && i < shape.rows; ++i) {
    unsigned char* to = block.image.data() + block.offset + static_cast<size_t>(i) * step;
    if (host == nullptr) {
      std::memset(to, kPoison, row);
    } else {
      std::memcpy(to, static_cast<const unsigned char*>(host) + static_cast<size_t>(i) * row, row);
    }
  }
  block.memory = static_cast<unsigned char*>(allocate(ctx, block.image.size()));
  upload(ctx, block.memory, block.image.data(), block.image.size());
  unsigned char* first = block.memory + block.offset;
  blocks_.push_back(std::move(block));
  return first;
}

Outputs OpRun::finish() {
  ctx.synchronise();
  Outputs outputs;
  for (const Block& block : blocks_) {
    std::vector<unsigned char> after(block.image.size());
    download(ctx, after.data(), block.memory, after.size());
    if (block.role == Role::In) {
      EXPECT_TRUE(after == block.image) << "an input or the memory around it was changed";
      continue;
    }
    const size_t row = static_cast<size_t>(block.shape.cols) * block.element;
    const size_t step = static_cast<size_t>(block.shape.stride) * block.element;
    Outputs::Item item{block.name, {}};
    std::vector<unsigned char> fences = after;
    for (int64_t i = 0; row > 0 && i < block.shape.rows; ++i) {
      const size_t at = block.offset + static_cast<size_t>(i) * step;
      item.bytes.insert(item.bytes.end(), after.begin() + static_cast<int64_t>(at),
                        after.begin() + static_cast<int64_t>(at + row));
      std::memcpy(fences.data() + at, block.image.data() + at, row);
    }
    EXPECT_TRUE(fences == block.image) << "written outside of output " << block.name;
    outputs.items.push_back(std::move(item));
  }
  return outputs;
}

void OpTest::SetUp() {
  if (GetParam() == Backend::Cuda) {
    const CudaAvailability cuda = cuda_availability();
    ASSERT_TRUE(cuda.available) << "PWDICE_REQUIRE_GPU=1, but " << cuda.reason;
    contexts_.push_back(std::make_unique<Context>(ContextOptions{.backend = Backend::Cuda}));
    return;
  }
  for (int threads : {1, 2})
    contexts_.push_back(std::make_unique<Context>(ContextOptions{.threads = threads}));
}

namespace {

// Leaves the op exactly `bytes` of scratch, filled with NaN.
void limit_scratch(Context& ctx, size_t bytes) {
  Scratch& scratch = ctx.scratch();
  const size_t need = Scratch::rounded(bytes);
  ASSERT_LE(need, scratch.capacity()) << "the test's Context has too little scratch";
  scratch.take_bytes(scratch.capacity() - need, "op_case");
  ScratchScope scope(scratch);
  const std::vector<unsigned char> poison(need, kPoison);
  upload(ctx, scratch.take_bytes(need, "op_case"), poison.data(), need);
}

Outputs run_once(Context& ctx, int shift, size_t scratch_bytes, const std::function<void(OpRun&)>& body) {
  ScratchScope scope(ctx.scratch());
  limit_scratch(ctx, scratch_bytes);
  const size_t used = ctx.scratch().used();
  OpRun op(ctx, shift);
  body(op);
  EXPECT_EQ(ctx.scratch().used(), used) << "the op kept scratch";
  return op.finish();
}

void expect_same_bits(const Outputs& a, const Outputs& b, const char* when) {
  ASSERT_EQ(a.items.size(), b.items.size());
  for (size_t i = 0; i < a.items.size(); ++i) {
    EXPECT_TRUE(a.items[i].bytes == b.items[i].bytes)
        << "output " << a.items[i].name << " has other bits " << when;
  }
}

}  // namespace

Outputs OpTest::run(size_t scratch_bytes, const std::function<void(OpRun&)>& body) {
  Context& last = *contexts_.back();
  const Outputs first = run_once(*contexts_.front(), 0, scratch_bytes, body);
  expect_same_bits(first, run_once(last, 0, scratch_bytes, body), "on 2 threads or the second time");
  expect_same_bits(first, run_once(last, 1, scratch_bytes, body), "at addresses shifted by one element");
  return first;
}

void expect_same_bits_on_many_threads(const std::function<size_t(const Context&)>& scratch_bytes,
                                      const std::function<void(OpRun&)>& body) {
  Context one({.threads = 1}), many({.threads = 7});
  const Outputs want = run_once(one, 0, scratch_bytes(one), body);
  for (int round = 0; round < 30 && !testing::Test::HasFailure(); ++round) {
    expect_same_bits(want, run_once(many, 0, scratch_bytes(many), body), "on 7 threads");
  }
}

void expect_too_little_scratch(Context& ctx, const std::string& name, size_t bytes,
                               const std::function<void(OpRun&)>& body) {
  SCOPED_TRACE(name + " with " + std::to_string(bytes) + " bytes");
  ScratchScope scope(ctx.scratch());
  limit_scratch(ctx, bytes);
  const size_t used = ctx.scratch().used();
  OpRun op(ctx, 0);
  expect_error(ErrorCode::OutOfMemory, name + ": needs", [&] { body(op); });
  EXPECT_EQ(ctx.scratch().used(), used) << "the op kept scratch";
  for (const Outputs::Item& item : op.finish().items) {
    EXPECT_TRUE(
        std::all_of(item.bytes.begin(), item.bytes.end(), [](unsigned char b) { return b == kPoison; }))
        << item.name << " was written";
  }
}

}  // namespace pwdice::test
