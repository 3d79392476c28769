// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// What this machine can do at most, and what a piece of work therefore costs at least.

#include "../kernels/context.h"

namespace pwdice::bench {

// Rates of all threads of a Context together, from registers alone: the best of many short bursts, so that
// other work on the machine does not lower them.
struct Machine {
  double flop_per_s = 0;  // float FMAs count as two
  double exp_per_s = 0;   // the library's own vector exp and tanh, summed
  double tanh_per_s = 0;
};
Machine measure_machine(Context& ctx);

// What a computation needs, however it is done.
struct Work {
  double flop = 0, exp = 0, tanh = 0;

  Work operator+(const Work& other) const { return {flop + other.flop, exp + other.exp, tanh + other.tanh}; }
};

inline double bound_seconds(const Machine& machine, const Work& work) {
  return work.flop / machine.flop_per_s + work.exp / machine.exp_per_s + work.tanh / machine.tanh_per_s;
}

// The same with rates of this moment: one burst of each kind that `work` has, on all threads.
double bound_seconds_now(Context& ctx, const Work& work);

}  // namespace pwdice::bench
