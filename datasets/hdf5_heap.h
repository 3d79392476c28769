// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Where HDF5 keeps names, long attributes and strings of variable length, for hdf5_*.cpp alone.

#include <functional>
#include <string>
#include <vector>

#include "hdf5_source.h"

namespace pwdice::hdf5 {

// Names of an old-style group.
class LocalHeap {
 public:
  LocalHeap(const Source& source, uint64_t address);
  std::string name(uint64_t offset) const;

 private:
  std::vector<std::byte> data_;
  const Source& source_;
};

// One object of a global heap: the characters of a string of variable length.
std::string global_heap_text(const Source& source, uint64_t collection, uint32_t index);

// Links and attributes of new-style groups: blocks of doubling size under a tree of indirect blocks.
class FractalHeap {
 public:
  FractalHeap(const Source& source, uint64_t address);
  Cursor object(std::span<const std::byte> id) const;  // id as stored in a B-tree record

 private:
  uint64_t row_bytes(uint64_t row) const { return start_bytes_ << (row == 0 ? 0 : row - 1); }
  uint64_t find_block(uint64_t offset, uint64_t* block_offset) const;

  const Source& source_;
  uint64_t address_, width_, start_bytes_, max_direct_bytes_, root_, root_rows_;
  uint64_t max_managed_;
  int heap_bits_;
};

// Calls `record` with each record of a version 2 B-tree; at most `limit` of them.
void each_record(const Source& source, uint64_t address, uint64_t limit,
                 const std::function<void(Cursor& record)>& record);

}  // namespace pwdice::hdf5
