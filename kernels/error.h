// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pwdice {

enum class ErrorCode {
  InvalidArgument,  // the caller's mistake: a shape, an option, a value out of range
  Unsupported,      // this build, CPU or device cannot do it
  OutOfMemory,
  DeviceLost,  // the Context refuses further work
  BadFile,     // a file that is missing, damaged or not what it claims to be
  NotFinite,   // NaN or infinity where a number is needed
  Internal,    // a defect of the library
};

const char* name(ErrorCode code) noexcept;

// The one exception type of the library. what() is one sentence that names the op and the values.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

namespace detail {

// One value of a message, type-erased so that a check costs its caller one branch and no template code.
struct MessageArg {
  enum class Kind { Int, Unsigned, Real, Text } kind;
  int64_t i = 0;
  uint64_t u = 0;
  double r = 0;
  std::string_view t;

  MessageArg(int v) : kind(Kind::Int), i(v) {}
  MessageArg(long v) : kind(Kind::Int), i(v) {}
  MessageArg(long long v) : kind(Kind::Int), i(v) {}
  MessageArg(unsigned v) : kind(Kind::Unsigned), u(v) {}
  MessageArg(unsigned long v) : kind(Kind::Unsigned), u(v) {}
  MessageArg(unsigned long long v) : kind(Kind::Unsigned), u(v) {}
  MessageArg(float v) : kind(Kind::Real), r(v) {}
  MessageArg(double v) : kind(Kind::Real), r(v) {}
  MessageArg(const char* v) : kind(Kind::Text), t(v) {}
  MessageArg(std::string_view v) : kind(Kind::Text), t(v) {}
  MessageArg(const std::string& v) : kind(Kind::Text), t(v) {}
};

[[noreturn]] void fail(ErrorCode code, std::string_view pattern, std::initializer_list<MessageArg> args);

}  // namespace detail

// Replaces each {} of the pattern by the next value.
std::string format_message(std::string_view pattern, std::initializer_list<detail::MessageArg> args);

template <class... A>
[[noreturn]] void fail(ErrorCode code, std::string_view pattern, const A&... args) {
  detail::fail(code, pattern, {detail::MessageArg(args)...});
}

}  // namespace pwdice

// Guards a caller's mistake: PWDICE_CHECK(n > 0, "gather: n is {}, expected at least 1", n);
#define PWDICE_CHECK(condition, ...)                                                \
  do {                                                                              \
    if (!(condition)) ::pwdice::fail(::pwdice::ErrorCode::InvalidArgument, __VA_ARGS__); \
  } while (false)
