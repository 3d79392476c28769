// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// What a learner built on the library does: a network, a loss, some steps.
#include <cstdio>
#include <vector>

#include "host/functions.h"
#include "host/layers.h"
#include "host/optim.h"

int main() {
  pwdice::Context ctx;
  pwdice::ParamStore params("net");
  pwdice::Mlp net(params, "net", {2, 16, 1}, pwdice::Activation::Tanh);
  params.allocate(ctx);
  params.initialise(ctx, 0);
  pwdice::Optimiser optimiser(ctx, params, {.learning_rate = 1e-2f});
  pwdice::Tape tape(ctx);

  std::vector<float> x, y;
  for (int i = 0; i < 64; ++i) {
    const float a = static_cast<float>(i % 8) / 4 - 1, b = static_cast<float>(i / 8) / 4 - 1;
    x.insert(x.end(), {a, b});
    y.push_back(a * b);
  }
  float first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    tape.begin(params);
    const pwdice::Tensor out = mlp(tape, tape.constant(pwdice::Mat<const float>(x.data(), 64, 2)), net);
    const pwdice::Tensor error = sub(tape, out, tape.constant(pwdice::Vec<const float>{y.data(), 64}));
    const pwdice::Tensor loss = mean(tape, square(tape, error));
    tape.backward(loss);
    optimiser.step(ctx, loss);
    last = download_scalar(ctx, loss);
    if (step == 0) first = last;
  }
  std::printf("loss %g -> %g\n", first, last);
  return last < 0.1f * first ? 0 : 1;
}
