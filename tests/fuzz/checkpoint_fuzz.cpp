// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <cstdint>
#include <string>

#include "../../host/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    // The checksum would stop every mutation, so the fuzzer's bytes get a right one.
    std::string bytes(reinterpret_cast<const char*>(data), size);
    const pwdice::Checkpoint checkpoint = pwdice::Checkpoint::parse(pwdice::with_checksum(bytes), "fuzz");
    if (checkpoint.has("step")) checkpoint.get<int64_t>("step");
  } catch (const pwdice::Error&) {
  }
  return 0;
}
