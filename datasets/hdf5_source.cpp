// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "hdf5_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "../kernels/error.h"

namespace pwdice::hdf5 {

constexpr uint64_t kMaxBlock = uint64_t{1} << 26;  // of one structure; arrays are not read through cursors

Source::Source(const std::filesystem::path& file) : name_(file.string()) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) fail(ErrorCode::BadFile, "{} does not exist", name_);
  if (!std::filesystem::is_regular_file(status)) fail(ErrorCode::BadFile, "{} is not a file", name_);
  descriptor_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info = {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &info) != 0) {
    if (descriptor_ >= 0) ::close(descriptor_);
    fail(ErrorCode::BadFile, "{} cannot be opened: {}", name_, std::strerror(errno));
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

Source::Source(std::span<const std::byte> bytes, std::string name)
    : name_(std::move(name)), size_(bytes.size()), memory_(bytes.begin(), bytes.end()) {}

Source::~Source() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Source::read(uint64_t address, std::span<std::byte> to) const {
  if (address > size_ || to.size() > size_ - address) damaged("a part that lies outside the file", address);
  if (descriptor_ < 0) {
    std::copy_n(memory_.begin() + static_cast<int64_t>(address), to.size(), to.begin());
    return;
  }
  for (size_t done = 0; done < to.size();) {
    const ssize_t got =
        ::pread(descriptor_, to.data() + done, to.size() - done, static_cast<off_t>(address + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) damaged("a part that cannot be read", address + done);
    done += static_cast<size_t>(got);
  }
}

void Source::damaged(const char* what, uint64_t address) const {
  fail(ErrorCode::BadFile, "{} is damaged or truncated: {} at byte {}", name_, what, address);
}

Cursor::Cursor(const Source& source, uint64_t address, uint64_t bytes) : source_(&source), address_(address) {
  if (address > source.size() || bytes > source.size() - address) {
    source.damaged("a part that lies outside the file", address);
  }
  if (bytes > kMaxBlock) source.damaged("a structure of absurd size", address);
  bytes_.resize(bytes);
  source.read(address, bytes_);
}

Cursor::Cursor(const Source& source, std::vector<std::byte> bytes, uint64_t address)
    : source_(&source), bytes_(std::move(bytes)), address_(address) {}

uint64_t Cursor::number(int bytes) {
  const std::span<const std::byte> raw = take(static_cast<uint64_t>(bytes));
  uint64_t value = 0;
  for (int k = 0; k < bytes; ++k) value |= std::to_integer<uint64_t>(raw[k]) << (8 * k);
  return value;
}

uint64_t Cursor::offset() {
  const int bytes = source_->offset_bytes;
  const uint64_t value = number(bytes);
  if (value == kNowhere >> (64 - 8 * bytes)) return kNowhere;
  if (value > source_->size()) damaged("an address outside the file");
  return value + source_->base;
}

std::span<const std::byte> Cursor::take(uint64_t bytes) {
  if (bytes > left()) damaged("a structure that ends early");
  at_ += bytes;
  return std::span(bytes_).subspan(at_ - bytes, bytes);
}

std::string Cursor::text(uint64_t bytes) {
  const std::span<const std::byte> raw = take(bytes);
  const auto end = std::find(raw.begin(), raw.end(), std::byte{0});
  std::string out;
  for (auto c = raw.begin(); c != end; ++c) out += static_cast<char>(*c);
  return out;
}

void Cursor::expect(std::string_view signature, const char* what) {
  const std::span<const std::byte> raw = take(signature.size());
  if (std::memcmp(raw.data(), signature.data(), signature.size()) != 0) damaged(what);
}

Cursor Cursor::part(uint64_t bytes) {
  const std::span<const std::byte> raw = take(bytes);
  return {*source_, {raw.begin(), raw.end()}, address_};
}

}  // namespace pwdice::hdf5
