// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <string>

namespace pwdice {

// Held by the process that writes to a run directory; the kernel gives it back when the process ends, however it does.
class DirectoryLock {
 public:
  DirectoryLock() = default;
  explicit DirectoryLock(const std::string& directory);  // throws InvalidArgument when another process holds it
  ~DirectoryLock();
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;

 private:
  int file_ = -1;
};

}  // namespace pwdice
