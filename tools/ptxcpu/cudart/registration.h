// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
// What nvcc's host code registers before main: kernels and variables by host address.
#pragma once

#include <cstdint>
#include <string>

#include "module.h"

namespace ptxcpu {

struct RegisteredKernel {
  uint64_t digest = 0;
  std::string name;
  size_t dynamic_shared_limit = 48 * 1024;  // raised by cudaFuncSetAttribute
};

// Null if the address is not that of a registered kernel.
RegisteredKernel* find_registered(const void* host_function);
const VariableInfo* find_symbol(const void* host_variable);

}  // namespace ptxcpu
