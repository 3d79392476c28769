// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "log.h"

namespace pwdice {

const char* name(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::Debug:
      return "debug";
    case LogLevel::Info:
      return "info";
    case LogLevel::Warning:
      return "warning";
    case LogLevel::Error:
      return "error";
  }
  return "unknown";
}

}  // namespace pwdice
