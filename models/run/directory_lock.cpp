// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "../../kernels/error.h"

namespace pwdice {

DirectoryLock::DirectoryLock(const std::string& directory) {
  const std::string path = directory + "/lock";
  file_ = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (file_ < 0) fail(ErrorCode::BadFile, "{}: cannot open: {}", path, std::strerror(errno));
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  const int reason = errno;
  ::close(file_);
  if (reason == EWOULDBLOCK) fail(ErrorCode::InvalidArgument, "{}: another process is training this run", directory);
  fail(ErrorCode::BadFile, "{}: cannot lock: {}", path, std::strerror(reason));
}

DirectoryLock::~DirectoryLock() {
  if (file_ >= 0) ::close(file_);
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

}  // namespace pwdice
