// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The stored bytes of a numeric array, for hdf5_file.cpp alone.
//
// A chunked array is not read with H5Dread: HDF5 inflates on one thread, and its deflate filter doubles the
// output buffer for as long as the stream goes on, so a small hostile file could ask for any amount of
// memory. Here the raw chunks are fetched one at a time (HDF5 is not thread-safe), and inflated, unshuffled
// and put in place by several threads, each into a buffer of exactly the chunk's size.

#include <cstddef>
#include <string>
#include <vector>

#include "hdf5_handle.h"

namespace pwdice::hdf5 {

struct ArrayShape {
  std::vector<int64_t> dims;
  int64_t item = 0;   // bytes of one value
  int64_t bytes = 0;  // of the array
};

// How an array is stored.
struct ArrayLayout {
  std::vector<int64_t> chunk;  // empty: contiguous or compact
  std::vector<H5Z_filter_t> filters;
};

// Refuses data kept elsewhere and unknown filters. To be called first: even asking such an array for its
// shape may make HDF5 open other files.
ArrayLayout check_storage(hid_t dataset, const std::string& where);

// Refuses an array that claims more than the file can hold, before anything is allocated for it.
void check_size(hid_t dataset, const ArrayShape& shape, const ArrayLayout& layout, int64_t file_bytes,
                const std::string& where);

// Fills `out` (shape.bytes) with the values in the file's own type and byte order.
void read_raw(hid_t dataset, hid_t type, const ArrayShape& shape, const ArrayLayout& layout, std::byte* out,
              const std::string& where);

}  // namespace pwdice::hdf5
