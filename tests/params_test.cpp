// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../host/params.h"

#include <cmath>
#include <cstring>

#include "../host/layers.h"
#include "../host/optim.h"
#include "op_case.h"

namespace pwdice::test {
namespace {

class Params : public testing::TestWithParam<Backend> {
 protected:
  Context ctx_{ContextOptions{.backend = GetParam(), .threads = 2}};
};
INSTANTIATE_TEST_SUITE_P(, Params, testing::ValuesIn(test_backends()), backend_name);

TEST_P(Params, OneFlatBuffer) {
  ParamStore params("encoder");
  const Mlp net(params, "net", {11, 128, 32}, Activation::Relu);
  const Param w0 = params.add("w0", 32, 32, Init::uniform(0, 1));
  params.allocate(ctx_, true);
  ASSERT_EQ(params.entries().size(), 5u);
  EXPECT_EQ(params.entries()[0].name, "net.0.weight");
  EXPECT_EQ(params.entries()[3].name, "net.1.bias");
  EXPECT_EQ(params.count(), 11 * 128 + 128 + 128 * 32 + 32 + 32 * 32);
  int64_t offset = 0;
  for (const ParamEntry& entry : params.entries()) {
    EXPECT_EQ(entry.offset, offset) << entry.name;
    offset += (entry.rows * entry.cols + 15) / 16 * 16;
  }
  EXPECT_EQ(params.size(), offset);
  EXPECT_EQ(params.gradients().data, params.values().data + params.size());
  EXPECT_EQ(params.gradients_and_loss().data, params.gradients().data);
  EXPECT_EQ(params.gradients_and_loss().size, params.size() + 1);
  EXPECT_EQ(params.first_moments().data + params.size(), params.second_moments().data);
  EXPECT_EQ(params.second_moments().data + params.size(), params.average().data);
  EXPECT_EQ(params.find("w0").value().data, w0.value().data);
  EXPECT_EQ(w0.gradient().data - params.gradients().data, params.entries()[4].offset);
  for (const StateSpan& span : params.state())
    EXPECT_EQ(span.bytes, static_cast<size_t>(params.size()) * 4) << span.name;
  EXPECT_EQ(params.state().size(), 4u);
}

TEST_P(Params, InitialValues) {
  ParamStore params("net");
  const Mlp torch(params, "torch", {100, 50}, Activation::Relu);
  const Mlp xavier(params, "xavier", {100, 50}, Activation::Relu, WeightInit::Xavier);
  const Param w0 = params.add("w0", 32, 32, Init::uniform(0, 1));
  params.allocate(ctx_, true);
  params.initialise(ctx_, 9);
  const auto values = [&](const Param& p) {
    return download(ctx_, Vec<float>{p.value().data, p.value().size()});
  };
  const auto expect_uniform = [&](const Param& p, double low, double high) {
    double mean = 0, smallest = high, largest = low;
    for (const float value : values(p)) {
      const double v = static_cast<double>(value);
      mean += v / static_cast<double>(p.value().size());
      smallest = std::min(smallest, v), largest = std::max(largest, v);
    }
    const double width = high - low, n = static_cast<double>(p.value().size());
    EXPECT_GE(smallest, low - 1e-7);
    EXPECT_LT(largest, high + 1e-7);
    EXPECT_LT(smallest, low + 10 * width / n);
    EXPECT_GT(largest, high - 10 * width / n);
    EXPECT_NEAR(mean, (low + high) / 2, 5 * width / std::sqrt(12 * n));
  };
  expect_uniform(torch.layers()[0].w, -0.1, 0.1);
  expect_uniform(torch.layers()[0].b, -0.1, 0.1);
  expect_uniform(xavier.layers()[0].w, -0.2, 0.2);
  EXPECT_EQ(values(xavier.layers()[0].b), std::vector<float>(50, 0.0f));
  expect_uniform(w0, 0, 1);
  EXPECT_EQ(download(ctx_, params.average()), download(ctx_, params.values()));
  EXPECT_EQ(download(ctx_, params.first_moments()),
            std::vector<float>(static_cast<size_t>(params.size()), 0.0f));
}

// A value depends on the seed and its own name, not on what else the store holds nor on the backend.
TEST_P(Params, AnotherEntryDoesNotMoveTheOthers) {
  const auto first_weights = [&](bool with_other, uint64_t seed) {
    ParamStore params("net");
    if (with_other) params.add("other", 3, 5, Init::uniform(0, 1));
    const Param w = params.add("w", 4, 4, Init::linear(4));
    params.allocate(ctx_);
    params.initialise(ctx_, seed);
    return download(ctx_, Vec<float>{w.value().data, 16});
  };
  EXPECT_EQ(first_weights(false, 1), first_weights(true, 1));
  EXPECT_NE(first_weights(false, 1), first_weights(false, 2));
}

TEST_P(Params, Misuse) {
  ParamStore params("net");
  expect_error(ErrorCode::InvalidArgument, "net: no parameters", [&] { params.allocate(ctx_); });
  params.add("w", 2, 2, Init::zero());
  expect_error(ErrorCode::InvalidArgument, "net: parameter w added twice",
               [&] { params.add("w", 1, 1, Init::zero()); });
  expect_error(ErrorCode::InvalidArgument, "net: parameter x is 0 x 3",
               [&] { params.add("x", 0, 3, Init::zero()); });
  expect_error(ErrorCode::InvalidArgument, "net: used before allocate", [&] { params.values(); });
  params.allocate(ctx_);
  expect_error(ErrorCode::InvalidArgument, "net: parameter y added after",
               [&] { params.add("y", 1, 1, Init::zero()); });
  expect_error(ErrorCode::InvalidArgument, "net: no parameter named z", [&] { params.find("z"); });
  expect_error(ErrorCode::InvalidArgument, "net: allocated without an average", [&] { params.average(); });
  expect_error(ErrorCode::InvalidArgument, "net: a step ends", [&] { params.end_step(ctx_); });
}

TEST(Place, IsABackendAndADevice) {
  const Place cpu, first{Backend::Cuda, 0}, second{Backend::Cuda, 1};
  for (Place place : {cpu, first, second}) EXPECT_NO_THROW(check_place("f", "x", place, place));
  const auto bad = ErrorCode::InvalidArgument;
  expect_error(bad, "f: x is in the memory of the CPU, the Context runs on CUDA device 0",
               [&] { check_place("f", "x", cpu, first); });
  expect_error(bad, "f: x is in the memory of CUDA device 1, the Context runs on CUDA device 0",
               [&] { check_place("f", "x", second, first); });
  expect_error(bad, "f: x is in the memory of CUDA device 1, the Context runs on the CPU",
               [&] { check_place("f", "x", second, cpu); });
  EXPECT_EQ(place_of(Context({.threads = 1})), cpu);
}

// A store of one backend in the hands of every other one the binary has.
TEST_P(Params, OfAnotherBackendAreRefused) {
  for (Backend other : test_backends()) {
    Context elsewhere(ContextOptions{.backend = other, .threads = 1});
    ParamStore params("encoder");
    const Mlp net(params, "net", {3, 4, 1}, Activation::Relu);
    params.allocate(ctx_);
    params.initialise(ctx_, 1);
    Optimiser optimiser(ctx_, params, {});
    Tape tape(elsewhere);
    const Mat<float> x = tape.output(2, 3), y = tape.output(2, 1);
    fill(elsewhere, {x.data, x.size()}, 1.f);
    const Tensor loss = tape.full(1, 1, 0.f);
    params.begin_step();
    const std::pair<const char*, std::function<void()>> uses[] = {
        {"tape.begin", [&] { tape.begin(params); }},
        {"mlp.predict", [&] { net.predict(elsewhere, x, y); }},
        {"optimiser", [&] { Optimiser(elsewhere, params, {}); }},
        {"optimiser.step", [&] { optimiser.step(elsewhere, loss); }},
    };
    for (const auto& [function, use] : uses) {
      if (other == GetParam()) {
        EXPECT_NO_THROW(use()) << function;
      } else {
        expect_error(ErrorCode::InvalidArgument, std::string(function) + ": encoder is in the memory of ", use);
      }
    }
  }
}

}  // namespace
}  // namespace pwdice::test
