// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cstdint>
#include <span>

#include "../../datasets/hdf5_file.h"
#include "../../kernels/error.h"
#include "../../models/policy_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const pwdice::Hdf5Reader file(std::as_bytes(std::span(data, size)), "fuzz", {.max_bytes = 1 << 20, .max_children = 1000});
    pwdice::load_policy(file);
  } catch (const pwdice::Error&) {
  }
  return 0;
}
