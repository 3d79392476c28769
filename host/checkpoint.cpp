// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "crc32.h"

namespace pwdice {
namespace {

constexpr char kMagic[] = "PWDICECK";
constexpr uint32_t kVersion = 1;
constexpr size_t kMaxBytes = size_t{8} << 30;  // a damaged length must not ask for more
constexpr uint32_t kMaxSections = 100000, kMaxName = 4096;

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Reads from the front of a buffer and refuses to read past its end.
class Reader {
 public:
  Reader(const std::string& bytes, size_t end, const std::string& origin)
      : bytes_(bytes), end_(end), origin_(origin) {}
  template <class T>
  T value() {
    T out;
    std::memcpy(&out, take(sizeof out), sizeof out);
    return out;
  }
  const char* take(uint64_t count) {
    if (count > end_ - at_)
      fail(ErrorCode::BadFile, "{}: damaged checkpoint, a section ends past the end", origin_);
    const char* data = bytes_.data() + at_;
    at_ += count;
    return data;
  }
  bool done() const { return at_ == end_; }

 private:
  const std::string& bytes_;
  size_t at_ = 0, end_;
  const std::string& origin_;
};

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags, 0644)), path_(path) {
    if (fd_ < 0) fail(ErrorCode::BadFile, "{}: cannot open: {}", path, std::strerror(errno));
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  void write_all(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::write(fd_, bytes.data() + at, bytes.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(ErrorCode::BadFile, "{}: cannot write: {}", path_, std::strerror(errno));
      at += static_cast<size_t>(n);
    }
  }
  void sync() {
    if (::fsync(fd_) != 0) fail(ErrorCode::BadFile, "{}: cannot sync: {}", path_, std::strerror(errno));
  }

 private:
  int fd_;
  std::string path_;
};

}  // namespace

void write_file_atomically(const std::string& path, const std::string& bytes) {
  const std::filesystem::path target(path);
  const std::string temporary = path + ".partial";
  {
    File file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    file.write_all(bytes);
    file.sync();
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    fail(ErrorCode::BadFile, "{}: cannot rename the finished file into place: {}", path,
         std::strerror(errno));
  }
  const auto parent = target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
  File(parent.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync();
}

std::string read_file(const std::string& path, size_t cap) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || std::filesystem::is_directory(path)) fail(ErrorCode::BadFile, "{}: no such file", path);
  const std::streamoff size = in.tellg();
  if (size < 0 || static_cast<uint64_t>(size) > cap) {
    fail(ErrorCode::BadFile, "{}: {} bytes, more than the {} expected at most", path,
         static_cast<int64_t>(size), cap);
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  in.seekg(0);
  if (!in.read(bytes.data(), size)) fail(ErrorCode::BadFile, "{}: cannot read", path);
  return bytes;
}

std::string with_checksum(std::string bytes) {
  append(bytes, crc32_ieee(bytes.data(), bytes.size()));
  return bytes;
}

void Checkpoint::put_bytes(const std::string& name, const void* data, size_t bytes) {
  PWDICE_CHECK(!name.empty() && name.size() <= kMaxName, "checkpoint: a section name has {} characters",
               name.size());
  const auto* begin = static_cast<const char*>(data);
  sections_[name].assign(begin, begin + bytes);
}

size_t Checkpoint::bytes_of(const std::string& name) const {
  const auto found = sections_.find(name);
  if (found == sections_.end()) fail(ErrorCode::BadFile, "{}: no section {}", origin_, name);
  return found->second.size();
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> out;
  for (const auto& [name, bytes] : sections_) out.push_back(name);
  return out;
}

void Checkpoint::get_bytes(const std::string& name, void* data, size_t bytes) const {
  const size_t have = bytes_of(name);
  if (have != bytes)
    fail(ErrorCode::BadFile, "{}: section {} has {} bytes, expected {}", origin_, name, have, bytes);
  if (bytes > 0) std::memcpy(data, sections_.at(name).data(), bytes);
}

std::string Checkpoint::get_text(const std::string& name) const {
  bytes_of(name);
  const auto& bytes = sections_.at(name);
  return {bytes.begin(), bytes.end()};
}

void Checkpoint::save(const std::string& path) const {
  std::string out(kMagic, 8);
  append(out, kVersion);
  append(out, static_cast<uint32_t>(sections_.size()));
  for (const auto& [name, bytes] : sections_) {
    append(out, static_cast<uint32_t>(name.size()));
    out += name;
    append(out, static_cast<uint64_t>(bytes.size()));
    out.append(bytes.data(), bytes.size());
  }
  write_file_atomically(path, with_checksum(std::move(out)));
}

Checkpoint Checkpoint::load(const std::string& path) { return parse(read_file(path, kMaxBytes), path); }

Checkpoint Checkpoint::parse(const std::string& bytes, const std::string& origin) {
  constexpr size_t kHeader = 8 + 4 + 4, kCrc = 4;
  if (bytes.size() < kHeader + kCrc || bytes.compare(0, 8, kMagic) != 0) {
    fail(ErrorCode::BadFile, "{}: not a pwdice checkpoint", origin);
  }
  uint32_t stored;
  std::memcpy(&stored, bytes.data() + bytes.size() - kCrc, kCrc);
  if (crc32_ieee(bytes.data(), bytes.size() - kCrc) != stored) {
    fail(ErrorCode::BadFile, "{}: damaged checkpoint, the checksum does not match", origin);
  }
  Checkpoint out;
  out.origin_ = origin;
  Reader reader(bytes, bytes.size() - kCrc, out.origin_);
  reader.take(8);
  if (const auto version = reader.value<uint32_t>(); version != kVersion) {
    fail(ErrorCode::BadFile, "{}: checkpoint of version {}, this program reads {}", origin, version,
         kVersion);
  }
  const auto count = reader.value<uint32_t>();
  if (count > kMaxSections) fail(ErrorCode::BadFile, "{}: damaged checkpoint, {} sections", origin, count);
  for (uint32_t i = 0; i < count; ++i) {
    const auto length = reader.value<uint32_t>();
    if (length == 0 || length > kMaxName)
      fail(ErrorCode::BadFile, "{}: damaged checkpoint, a name of {} bytes", origin, length);
    const std::string name(reader.take(length), length);
    const auto size = reader.value<uint64_t>();
    const char* data = reader.take(size);
    out.sections_[name].assign(data, data + size);
  }
  if (!reader.done())
    fail(ErrorCode::BadFile, "{}: damaged checkpoint, bytes after the last section", origin);
  return out;
}

}  // namespace pwdice
