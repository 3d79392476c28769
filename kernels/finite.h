// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <initializer_list>

#include "context.h"

namespace pwdice {

// A tensor by the name it has in its op's contract.
struct NamedTensor {
  const char* name;
  Mat<const float> values;

  NamedTensor(const char* n, Mat<const float> m) : name(n), values(m) {}
  NamedTensor(const char* n, Vec<const float> v) : name(n), values(v.data, v.size, 1) {}
};

// After a loss op on the CPU: a loss that is not finite throws NotFinite with one sentence that names the op
// and the first input value to blame. Costs one comparison when all is well. On a GPU it does nothing,
// because looking would read back: there all_finite and the guard of adam protect the parameters.
void check_loss(Context& ctx, const char* op, Vec<const float> loss,
                std::initializer_list<NamedTensor> inputs);

// The same after an op whose output is no loss but one value per state: NaN throws. An infinity may be an answer there,
// of a pair that is infinitely far. One pass over the output, so not for what a training step computes.
void check_values(Context& ctx, const char* op, const char* output, Vec<const float> values,
                  std::initializer_list<NamedTensor> inputs);

// Before an op on the CPU: what it takes must be finite.
void check_finite(Context& ctx, const char* op, std::initializer_list<NamedTensor> inputs);

// After it: so must be what it computed.
void check_outputs(Context& ctx, const char* op, std::initializer_list<NamedTensor> outputs,
                   std::initializer_list<NamedTensor> inputs);

}  // namespace pwdice
