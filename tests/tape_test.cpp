// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "../host/tape.h"

#include "../host/layers.h"
#include "reference.h"
#include "tape_case.h"

namespace pwdice::test {
namespace {

class TapeWalk : public TapeTest {};
INSTANTIATE_TEST_SUITE_P(, TapeWalk, testing::ValuesIn(test_backends()), backend_name);

TEST_P(TapeWalk, ConstantsLeaveNothingOnTheTape) {
  tape_.begin();
  const Tensor a = tape_.full(2, 2, 3.0f);
  const Tensor y = sum(tape_, mul(tape_, a, a));
  EXPECT_EQ(tape_.size(), 0u);
  EXPECT_EQ(download_scalar(ctx_, y), 36.0f);
  expect_error(ErrorCode::InvalidArgument, "the root is a constant", [&] { tape_.backward(y); });
}

TEST_P(TapeWalk, RootMustBeAScalar) {
  tape_.begin();
  const Tensor x = tape_.variable(in_memory(normal(6), 2, 3));
  expect_error(ErrorCode::InvalidArgument, "the root is 2 x 3", [&] { tape_.backward(square(tape_, x)); });
}

TEST_P(TapeWalk, BackwardEndsTheRecord) {
  tape_.begin();
  const Tensor x = tape_.variable(in_memory(normal(3), 3, 1));
  const Tensor y = sum(tape_, square(tape_, x));
  tape_.backward(y);
  expect_error(ErrorCode::InvalidArgument, "tape.backward: backward() has ended", [&] { tape_.backward(y); });
  expect_error(ErrorCode::InvalidArgument, "tape.gradient: backward() has ended",
               [&] { tape_.gradient(y, x, {}); });
}

TEST_P(TapeWalk, GradientByWhatDoesNotMatterIsZero) {
  tape_.begin();
  const Tensor x = tape_.variable(in_memory(normal(3), 3, 1)),
               other = tape_.variable(in_memory(normal(4), 2, 2));
  const Tensor y = sum(tape_, square(tape_, x));
  EXPECT_EQ(download(ctx_, tape_.gradient(y, other, {})), std::vector<float>(4, 0.0f));
  const Tensor late = tape_.variable(in_memory(normal(2), 2, 1));
  EXPECT_EQ(download(ctx_, tape_.gradient(y, late, {})), std::vector<float>(2, 0.0f));
}

TEST_P(TapeWalk, ThirdDerivative) {
  tape_.begin();
  const Tensor x = tape_.variable(in_memory({0.4f}, 1, 1));
  Tensor y = tanh(tape_, x);
  for (int order = 0; order < 3; ++order) y = tape_.gradient(y, x, {.create_graph = true});
  const double t = std::tanh(0.4), s = 1 - t * t;  // tanh''' = -2 s^2 + 4 t^2 s
  expect_within(download_scalar(ctx_, y), -2 * s * s + 4 * t * t * s, 1e-5);
}

// One parameter used by several functions: the first contribution is written, the others are added.
TEST_P(TapeWalk, ParameterGradientsAddUp) {
  ParamStore params("test");
  const Param p = params.add("p", 2, 2, Init::uniform(-1, 1)),
              unused = params.add("unused", 3, 1, Init::zero());
  params.allocate(ctx_);
  params.initialise(ctx_, 7);
  const auto value = download(ctx_, Vec<float>{p.value().data, 4});
  for (int step = 0; step < 2; ++step) {  // the second step starts anew
    tape_.begin(params);
    const Tensor a = tape_.parameter(p), b = tape_.parameter(p);
    const Tensor loss = add(tape_, sum(tape_, square(tape_, a)), sum(tape_, scale(tape_, b, 3.0f)));
    tape_.backward(loss);
    params.end_step(ctx_);
    const auto gradient = download(ctx_, Vec<float>{p.gradient().data, 4});
    for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(gradient[i], 2 * value[i] + 3);
    EXPECT_EQ(download(ctx_, Vec<float>{unused.gradient().data, 3}), std::vector<float>(3, 0.0f));
  }
}

TEST_P(TapeWalk, AStepMustBeginWithItsStore) {
  ParamStore params("net");
  const Mlp net(params, "net", {3, 4, 1}, Activation::Tanh);
  params.allocate(ctx_);
  params.initialise(ctx_, 1);
  tape_.begin();
  const Tensor loss = sum(tape_, mlp(tape_, tape_.constant(in_memory(normal(6), 2, 3)), net));
  expect_error(ErrorCode::InvalidArgument, "net: a gradient arrives", [&] { tape_.backward(loss); });
}

TEST_P(TapeWalk, GradientTouchesNoStore) {
  ParamStore params("net");
  const Mlp net(params, "net", {3, 4, 1}, Activation::Tanh);
  params.allocate(ctx_);
  params.initialise(ctx_, 1);
  fill(ctx_, params.gradients(), 5.0f);
  tape_.begin(params);
  const Tensor x = tape_.variable(in_memory(normal(6), 2, 3));
  tape_.gradient(sum(tape_, mlp(tape_, x, net)), x, {});
  tape_.gradient(sum(tape_, mlp_composed(tape_, x, net)), x, {});
  EXPECT_EQ(download(ctx_, params.gradients()), std::vector<float>(static_cast<size_t>(params.size()), 5.0f));
}

}  // namespace
}  // namespace pwdice::test
