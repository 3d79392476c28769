// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string_view>

#include "../kernels/error.h"

namespace pwdice {

enum class LogLevel { Debug, Info, Warning, Error };
const char* name(LogLevel level) noexcept;

// Where messages go. The embedder makes one and passes it to whoever should speak; a default Log is silent.
// A message below the threshold is not even formatted.
class Log {
 public:
  using Write = void (*)(void* user, LogLevel level, std::string_view message);

  Log() = default;
  explicit Log(Write write, void* user = nullptr, LogLevel threshold = LogLevel::Info)
      : write_(write), user_(user), threshold_(threshold) {}

  bool enabled(LogLevel level) const { return write_ != nullptr && level >= threshold_; }

  template <class... A>
  void debug(std::string_view pattern, const A&... args) const {
    say(LogLevel::Debug, pattern, args...);
  }
  template <class... A>
  void info(std::string_view pattern, const A&... args) const {
    say(LogLevel::Info, pattern, args...);
  }
  template <class... A>
  void warning(std::string_view pattern, const A&... args) const {
    say(LogLevel::Warning, pattern, args...);
  }
  template <class... A>
  void error(std::string_view pattern, const A&... args) const {
    say(LogLevel::Error, pattern, args...);
  }

 private:
  template <class... A>
  void say(LogLevel level, std::string_view pattern, const A&... args) const {
    if (enabled(level)) write_(user_, level, format_message(pattern, {detail::MessageArg(args)...}));
  }

  Write write_ = nullptr;
  void* user_ = nullptr;
  LogLevel threshold_ = LogLevel::Info;
};

}  // namespace pwdice
