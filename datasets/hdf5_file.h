// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The only place of the project that sees HDF5: data sets, policies, checkpoints and golden files go through
// these two classes.
//
// Files are hostile until shown otherwise, and the HDF5 library is not made for that: given a damaged header
// it allocates or reads what the header says. So files are written with the library and read by the code
// here, which knows the part of the format that such files use, checks every address and size against the
// file, and refuses the rest in one sentence (an Error{BadFile}) that names file and object: links out of the
// file, virtual or external storage, filters other than deflate and shuffle, compound types, sizes above a
// cap.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pwdice {

struct Hdf5Limits {
  int64_t max_bytes = int64_t{8} << 30;  // of one array in memory
  int64_t max_children = 1 << 20;        // of one group
};

enum class Hdf5Type { Float, Integer, Bool, String };

struct Hdf5Info {
  Hdf5Type type = Hdf5Type::Float;
  std::vector<int64_t> shape;  // empty for a scalar
  int64_t count() const;
};

// Used by one thread at a time. Objects are named by absolute paths such as "policy/layers/0/weight".
class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::filesystem::path& file, const Hdf5Limits& limits = {});
  // A file already in memory; `name` stands for it in messages. The bytes are copied.
  Hdf5Reader(std::span<const std::byte> bytes, std::string name, const Hdf5Limits& limits = {});
  ~Hdf5Reader();
  Hdf5Reader(Hdf5Reader&&) noexcept;
  Hdf5Reader& operator=(Hdf5Reader&&) noexcept;

  const std::string& name() const;
  bool has(std::string_view path) const;                            // an array or group of that name
  bool is_group(std::string_view path) const;                       // "" is the root
  std::vector<std::string> children(std::string_view group) const;  // sorted by name
  Hdf5Info info(std::string_view array) const;

  // The whole array, row-major; T is float, double, int32_t, int64_t, uint64_t or uint8_t. Floats convert to
  // floats and integers and bools to integers; a value that does not fit T is refused.
  template <class T>
  std::vector<T> read(std::string_view array) const;
  // The same into the caller's memory, which must hold info(array).count() values.
  template <class T>
  void read_into(std::string_view array, std::span<T> values) const;
  std::string read_string(std::string_view array) const;  // a scalar string

  // Attributes of a group or array; "" is the root.
  bool has_attribute(std::string_view path, std::string_view attribute) const;
  std::string string_attribute(std::string_view path, std::string_view attribute) const;
  double real_attribute(std::string_view path, std::string_view attribute) const;  // a float or an integer
  int64_t integer_attribute(std::string_view path, std::string_view attribute) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct Hdf5Storage {
  std::vector<int64_t> chunk;  // shape of a chunk; empty: contiguous, no filters
  int gzip = 0;                // deflate level, 0 = none
  bool shuffle = false;
};

// Writes a new file. Groups on the way to an object are made as needed.
class Hdf5Writer {
 public:
  Hdf5Writer();  // in memory: take the result with bytes()
  explicit Hdf5Writer(
      const std::filesystem::path& file);  // appears under its name at commit(), or not at all
  ~Hdf5Writer();
  Hdf5Writer(Hdf5Writer&&) noexcept;
  Hdf5Writer& operator=(Hdf5Writer&&) noexcept;

  void group(std::string_view path);
  // T is float, double, int32_t, int64_t, uint64_t or uint8_t; an empty shape is a scalar.
  template <class T>
  void write(std::string_view array, std::span<const T> values, std::span<const int64_t> shape,
             const Hdf5Storage& storage = {});
  // The enum {FALSE, TRUE} over one byte, as h5py stores numpy's bool.
  void write_bool(std::string_view array, std::span<const uint8_t> values, std::span<const int64_t> shape,
                  const Hdf5Storage& storage = {});
  void write_string(std::string_view array, std::string_view text);

  void attribute(std::string_view path, std::string_view attribute, std::string_view text);
  void attribute(std::string_view path, std::string_view attribute, const char* text);
  void attribute(std::string_view path, std::string_view attribute, double value);
  void attribute(std::string_view path, std::string_view attribute, int64_t value);

  std::vector<std::byte> bytes();  // closes; the whole file
  void commit();                   // closes, flushes to the disk and renames: all or nothing

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pwdice
