// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Files written with the HDF5 library itself, to be read by ours: layouts that Hdf5Writer does not make, and
// hostile ones.

#include <hdf5.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace pwdice::test {

namespace fs = std::filesystem;

// A directory of its own for each test program, removed at the end.
inline fs::path scratch_file(const std::string& name) {
  static const struct Directory {
    fs::path path = fs::temp_directory_path() / ("pwdice_test_" + std::to_string(::getpid()));
    Directory() { fs::create_directories(path); }
    ~Directory() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  } directory;
  return directory.path / name;
}

inline std::vector<char> bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const fs::path& file, const std::vector<char>& bytes) {
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

struct LibraryFile {
  hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
  hid_t id = -1;

  explicit LibraryFile(const fs::path& path, const std::function<void(LibraryFile&)>& configure = {}) {
    if (configure) configure(*this);
    id = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
  }
  ~LibraryFile() {
    H5Fclose(id);
    H5Pclose(creation);
    H5Pclose(access);
  }
  LibraryFile(const LibraryFile&) = delete;
  LibraryFile& operator=(const LibraryFile&) = delete;

  // An array of `stored` type from `memory` type; `configure` sets its creation properties; null: never
  // written.
  void array(const char* name, hid_t stored, hid_t memory, const void* values,
             const std::vector<hsize_t>& shape, const std::function<void(hid_t)>& configure = {},
             const std::vector<hsize_t>& most = {}) const {
    const hid_t space =
        H5Screate_simple(static_cast<int>(shape.size()), shape.data(), most.empty() ? nullptr : most.data());
    const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    if (configure) configure(plist);
    const hid_t set = H5Dcreate2(id, name, stored, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    if (values != nullptr) H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Pclose(plist);
    H5Sclose(space);
  }
};

// Numbers that are all different.
inline std::vector<float> counting(int64_t n) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<float>(i) * 0.5f - 3.f);
  return out;
}

}  // namespace pwdice::test
