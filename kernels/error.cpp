// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "error.h"

#include <cmath>
#include <cstdio>

namespace pwdice {

const char* name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::InvalidArgument: return "InvalidArgument";
    case ErrorCode::Unsupported: return "Unsupported";
    case ErrorCode::OutOfMemory: return "OutOfMemory";
    case ErrorCode::DeviceLost: return "DeviceLost";
    case ErrorCode::BadFile: return "BadFile";
    case ErrorCode::NotFinite: return "NotFinite";
    case ErrorCode::Internal: return "Internal";
  }
  return "Unknown";
}

namespace {

void append(std::string& out, const detail::MessageArg& arg) {
  char text[40];
  switch (arg.kind) {
    case detail::MessageArg::Kind::Int: out += std::to_string(arg.i); return;
    case detail::MessageArg::Kind::Unsigned: out += std::to_string(arg.u); return;
    case detail::MessageArg::Kind::Text: out += arg.t; return;
    case detail::MessageArg::Kind::Real:
      std::snprintf(text, sizeof text, "%g", std::isnan(arg.r) ? std::abs(arg.r) : arg.r);  // no "-nan"
      out += text;
  }
}

}  // namespace

std::string format_message(std::string_view pattern, std::initializer_list<detail::MessageArg> args) {
  std::string out;
  auto arg = args.begin();
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern.substr(at, 2) == "{}" && arg != args.end()) {
      append(out, *arg++);
      ++at;
    } else {
      out += pattern[at];
    }
  }
  return out;
}

void detail::fail(ErrorCode code, std::string_view pattern, std::initializer_list<MessageArg> args) {
  throw Error(code, format_message(pattern, args));
}

}  // namespace pwdice
