// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// gpu_model_planted counters.json: what ptxcpu counts in kernels that are bad on purpose.
#include <ptxcpu.h>

#include "planted_kernels.h"

int main(int argc, char** argv) {
  return argc == 2 && pwdice::planted::run() && ptxcpu_counters_write(argv[1]) == 0 ? 0 : 1;
}
