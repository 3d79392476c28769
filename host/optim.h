// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <optional>
#include <vector>

#include "../kernels/adam.h"
#include "params.h"
#include "tensor.h"

namespace pwdice {

struct AdamOptions {
  float learning_rate = 3e-4f, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f;
  float weight_decay = 0;
  std::optional<float> clip_norm = std::nullopt;  // of the whole gradient
  std::optional<float> ema_decay = std::nullopt;  // the store must have an average
};

// Adam over a whole store. A step whose loss or gradient is not finite changes nothing: on the CPU step()
// throws NotFinite at once; on a GPU the guard sits in device memory, that step and all later ones leave the
// parameters alone, and check() throws when it is next asked.
class Optimiser {
 public:
  Optimiser(Context& ctx, ParamStore& params, const AdamOptions& options);

  // The last thing a training step does; takes the gradients that tape.backward(loss) left in the store.
  void step(Context& ctx, const Tensor& loss);
  void set_learning_rate(Context& ctx, float value);  // between steps

  struct Report {
    float loss = 0;           // of the last step
    float gradient_norm = 0;  // before clipping
    float learning_rate = 0;
    int64_t steps = 0;  // taken so far
  };
  Report report(Context& ctx);  // reads back; for logging
  void check(Context& ctx);     // reads back; throws NotFinite

  const AdamOptions& options() const { return options_; }
  ParamStore& params() const { return params_; }
  std::vector<StateSpan> state()
      const;  // everything a resumed run needs: the store's, the step count, the rate

 private:
  [[noreturn]] void fail_not_finite(Context& ctx);
  float gradient_norm(Context& ctx);

  ParamStore& params_;
  AdamOptions options_;
  Array<int64_t> t_;
  Array<float> scalars_;  // learning rate, scale, flag of this step, ok, norm
  Vec<float> rate_, scale_, finite_, ok_, norm_;
};

}  // namespace pwdice
