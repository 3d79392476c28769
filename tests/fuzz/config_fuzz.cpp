// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cstdint>
#include <string>

#include "../../kernels/error.h"
#include "../../models/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    pwdice::validate(pwdice::config_from_toml(text, "fuzz"));
  } catch (const pwdice::Error&) {
  }
  return 0;
}
