// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "../kernels/error.h"

namespace pwdice {

// Named blocks of bytes in one file.
//   "PWDICECK" | u32 version | u32 sections | sections | u32 crc of all before
//   section: u32 name length | name | u64 bytes | bytes
// Written to a temporary file, synced and renamed, so that a file of that name is always whole: a process
// killed while it writes leaves the checkpoint before.
class Checkpoint {
 public:
  template <class T>
  void put(const std::string& name, const T* data, size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    put_bytes(name, data, count * sizeof(T));
  }
  template <class T>
  void put(const std::string& name, const T& value) {
    put(name, &value, 1);
  }
  void put_text(const std::string& name, const std::string& text) {
    put_bytes(name, text.data(), text.size());
  }

  // The section must exist and hold exactly `count` values, else BadFile.
  template <class T>
  void get(const std::string& name, T* data, size_t count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    get_bytes(name, data, count * sizeof(T));
  }
  template <class T>
  T get(const std::string& name) const {
    T value;
    get(name, &value, 1);
    return value;
  }
  std::string get_text(const std::string& name) const;
  bool has(const std::string& name) const { return sections_.count(name) > 0; }
  size_t bytes_of(const std::string& name) const;
  std::vector<std::string> names() const;

  void save(const std::string& path) const;
  static Checkpoint load(const std::string& path);
  static Checkpoint parse(const std::string& bytes, const std::string& origin);

 private:
  void put_bytes(const std::string& name, const void* data, size_t bytes);
  void get_bytes(const std::string& name, void* data, size_t bytes) const;

  std::map<std::string, std::vector<char>> sections_;
  std::string origin_ = "checkpoint";
};

// The bytes followed by the checksum that a checkpoint ends with.
std::string with_checksum(std::string bytes);

// Writes a whole file or none: temporary file in the same directory, fsync, rename, fsync of the directory.
void write_file_atomically(const std::string& path, const std::string& bytes);
std::string read_file(const std::string& path, size_t cap);  // BadFile when missing or larger than cap

}  // namespace pwdice
