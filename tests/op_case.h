// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// How every op is tested, the same way on every backend. A case names its inputs and outputs and calls the
// op:
//
//   class RowNorm : public OpTest {};
//   INSTANTIATE_TEST_SUITE_P(, RowNorm, testing::ValuesIn(test_backends()), backend_name);
//
//   TEST_P(RowNorm, Forward) {
//     const auto v = normal(n * d);
//     const Outputs got = run(/*scratch_bytes=*/0, [&](OpRun& op) {
//       row_norm_forward(op.ctx, {op.in(v, n, d), op.out("z", n, d), op.out("inv_norm", n)});
//     });
//     expect_close(got["z"], reference<double>(v), reference<float>(v));
//   }
//
// run() executes the case on 1 thread, on 2 threads and at addresses shifted by one element, demands the same
// bits each time, and checks that: outputs (poisoned with NaN) lie between canaries which survive, padding of
// strided rows included; inputs are unchanged; the op is content with exactly `scratch_bytes` of poisoned
// scratch and gives it back. Memory is reached through kernels/memory.h alone, so it may be a GPU's.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../kernels/context.h"

namespace pwdice::test {

// Cpu always; Cuda when this binary and machine can run it, or when PWDICE_REQUIRE_GPU=1 demands it.
std::vector<Backend> test_backends();
// For sizes that would take minutes through ptxcpu: Cuda only when PWDICE_REQUIRE_GPU=1 demands it.
std::vector<Backend> large_test_backends();
std::string backend_name(const testing::TestParamInfo<Backend>& info);

// One run's copies of the outputs, in the order in which the case asked for them.
class Outputs {
 public:
  struct Item {
    std::string name;
    std::vector<unsigned char> bytes;
  };

  std::vector<float> operator[](const std::string& name) const { return as<float>(name); }
  float value(const std::string& name) const { return as<float>(name).at(0); }
  template <class T>
  std::vector<T> as(const std::string& name) const {
    const std::vector<unsigned char>& bytes = find(name).bytes;
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::vector<Item> items;

 private:
  const Item& find(const std::string& name) const;
};

// Gives a case its tensors. Outputs are kept by name; names are only for the test.
class OpRun {
 public:
  OpRun(Context& context, int shift) : ctx(context), shift_(shift) {}
  ~OpRun();
  OpRun(const OpRun&) = delete;
  OpRun& operator=(const OpRun&) = delete;

  template <class T>
  Vec<const T> in(const std::vector<T>& host) {
    const auto n = static_cast<int64_t>(host.size());
    return {static_cast<const T*>(add("input", Role::In, sizeof(T), host.data(), {1, n, n})), n};
  }
  Vec<const float> in(float value) { return in(std::vector<float>{value}); }
  // stride 0: contiguous. Padding of an input is NaN, padding of an output a canary.
  Mat<const float> in(const std::vector<float>& host, int64_t rows, int64_t cols, int64_t stride = 0);

  template <class T = float>
  Vec<T> out(const std::string& name, int64_t n) {
    return {static_cast<T*>(add(name, Role::Out, sizeof(T), nullptr, {1, n, n})), n};
  }
  Mat<float> out(const std::string& name, int64_t rows, int64_t cols, int64_t stride = 0);

  template <class T>
  Vec<T> in_out(const std::string& name, const std::vector<T>& host) {
    const auto n = static_cast<int64_t>(host.size());
    return {static_cast<T*>(add(name, Role::InOut, sizeof(T), host.data(), {1, n, n})), n};
  }
  Mat<float> in_out(const std::string& name, const std::vector<float>& host, int64_t rows, int64_t cols);

  // Waits for the op, checks fences and inputs, returns the outputs.
  Outputs finish();

  Context& ctx;

 private:
  enum class Role { In, Out, InOut };
  struct Shape {
    int64_t rows, cols, stride;
  };
  struct Block {
    std::string name;
    Role role;
    size_t element;
    Shape shape;
    size_t offset;                     // of the first element within the block
    unsigned char* memory;             // the backend's
    std::vector<unsigned char> image;  // what was uploaded, canaries included
  };
  void* add(const std::string& name, Role role, size_t element, const void* host, Shape shape);

  int shift_;
  std::vector<Block> blocks_;
};

class OpTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override;

  // scratch_bytes: what the op's own <op>_scratch_bytes() says, 0 for an op that needs none.
  Outputs run(size_t scratch_bytes, const std::function<void(OpRun&)>& body);
  // A Context of the backend for what run() does not fit.
  Context& context() { return *contexts_.back(); }

 private:
  std::vector<std::unique_ptr<Context>> contexts_;  // CPU: 1 thread, 2 threads; CUDA: one
};

// On the CPU, with more threads than most machines have cores, so that they wait for one another and help each other
// out: the bits of one thread, again and again. scratch_bytes(ctx) is all the scratch there is.
void expect_same_bits_on_many_threads(const std::function<size_t(const Context&)>& scratch_bytes,
                                      const std::function<void(OpRun&)>& body);

// With `bytes` of scratch, too few: the op throws OutOfMemory, names itself, gives back what it took and leaves its
// outputs alone.
void expect_too_little_scratch(Context& ctx, const std::string& name, size_t bytes,
                               const std::function<void(OpRun&)>& body);

// -- comparing --------------------------------------------------------------------------------------------

// The largest error of `got` is at most 4 times that of plain float code on the same data, plus 4 ulp of the
// tensor's largest value. NaN and infinities must match exactly.
void expect_close(const std::vector<float>& got, const std::vector<double>& want,
                  const std::vector<float>& plain);
void expect_close(float got, double want, float plain);

// |got - want| <= rtol * scale + atol, scale = the tensor's largest |want|: for golden values and analytic
// bounds.
void expect_within(const std::vector<float>& got, const std::vector<double>& want, double rtol,
                   double atol = 0);
void expect_within(float got, double want, double rtol, double atol = 0);

// Every element within `ulps` float spacings of its own reference value.
void expect_ulps(const std::vector<float>& got, const std::vector<double>& want, double ulps);

template <class T>
void expect_equal(const std::vector<T>& got, const std::vector<T>& want) {
  EXPECT_EQ(got, want);
}

// Gradient of f at x by central differences in double, at most `limit` coordinates spread over x.
using Function = std::function<double(const std::vector<double>&)>;
// `gradient` (the op's, or the double reference's with a tight rtol) agrees with the differences of f.
template <class T>
void expect_gradient(const std::vector<T>& gradient, const Function& f, const std::vector<double>& x,
                     double rtol = 1e-4, int64_t limit = 64);

// fn must throw Error with this code, and its sentence must contain `part`.
void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& fn);

// -- data
// -----------------------------------------------------------------------------------------------------

// 0, 1, a prime, and the neighbourhood of a tile or chunk.
std::vector<int64_t> sizes(int64_t tile);

enum class Data { Normal, Huge, Tiny, Equal };
inline constexpr Data kAllData[] = {Data::Normal, Data::Huge, Data::Tiny, Data::Equal};
const char* name(Data data);

// Reproducible: a function of kind, size and seed. Huge is +-1e4-ish, Tiny 1e-30-ish.
std::vector<float> make_data(Data data, int64_t n, uint64_t seed = 1);
std::vector<float> normal(int64_t n, uint64_t seed = 1);
std::vector<float> uniform(int64_t n, float low, float high, uint64_t seed = 1);
std::vector<int32_t> indices(int64_t n, int64_t below, uint64_t seed = 1);

template <class T = double, class U>
std::vector<T> to(const std::vector<U>& values) {
  std::vector<T> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = static_cast<T>(values[i]);
  return result;
}

}  // namespace pwdice::test
