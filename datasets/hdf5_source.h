// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Bytes of an HDF5 file, for hdf5_*.cpp alone. Every read is checked against the end of the file or of the
// block it is in, so that no structure of the file can lead out of it.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pwdice::hdf5 {

inline constexpr uint64_t kNowhere = ~uint64_t{0};  // the format's undefined address

// A file on disk, read with pread (a mapping would turn a file that shrinks meanwhile into a crash), or one
// in memory. Reading is thread-safe.
class Source {
 public:
  explicit Source(const std::filesystem::path& file);
  Source(std::span<const std::byte> bytes, std::string name);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  void read(uint64_t address, std::span<std::byte> to) const;  // throws BadFile past the end

  // Addresses in the file count from here: a user block may precede the HDF5 part.
  uint64_t base = 0;
  int offset_bytes = 8, length_bytes = 8;

  [[noreturn]] void damaged(const char* what, uint64_t address) const;

 private:
  std::string name_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
  std::vector<std::byte> memory_;
};

// A block of the file, taken apart from front to back.
class Cursor {
 public:
  Cursor() = default;
  Cursor(const Source& source, uint64_t address, uint64_t bytes);
  Cursor(const Source& source, std::vector<std::byte> bytes, uint64_t address);

  uint64_t number(int bytes);  // little-endian, 1 to 8 bytes; all ones of a whole address is kNowhere
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t offset();  // an address, made absolute
  uint64_t length() { return number(source_->length_bytes); }
  std::span<const std::byte> take(uint64_t bytes);
  std::string text(uint64_t bytes);  // up to a zero byte
  void skip(uint64_t bytes) { take(bytes); }
  void align(uint64_t to, uint64_t from) { skip((to - (at_ - from) % to) % to); }  // counted from `from`
  void expect(std::string_view signature, const char* what);
  Cursor part(uint64_t bytes);  // the next bytes as a block of their own

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }
  const Source& source() const { return *source_; }
  [[noreturn]] void damaged(const char* what) const { source_->damaged(what, address_); }

 private:
  const Source* source_ = nullptr;
  std::vector<std::byte> bytes_;
  uint64_t address_ = 0, at_ = 0;
};

}  // namespace pwdice::hdf5
