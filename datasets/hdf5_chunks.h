// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// The stored bytes of an array, for hdf5_*.cpp alone. Chunks are read, inflated, unshuffled and put in place
// by several threads, each into buffers of exactly the chunk's size: a stream that inflates to more is an
// error, not an allocation.

#include "hdf5_object.h"

namespace pwdice::hdf5 {

struct ArrayShape {
  std::vector<int64_t> dims;
  int64_t item = 0;   // bytes of one value
  int64_t bytes = 0;  // of the array
};

// The grid of chunks over an array.
class ChunkGrid {
 public:
  ChunkGrid(const ArrayShape& shape, const std::vector<int64_t>& chunk, const std::string& where);

  double chunks_exactly() const { return exact_; }  // may be beyond int64_t for a hostile file
  int64_t chunks() const { return static_cast<int64_t>(exact_); }
  double chunk_bytes() const { return chunk_bytes_; }
  int64_t number(const std::vector<uint64_t>& offset) const;  // -1: not a corner of a chunk
  std::vector<int64_t> offset(int64_t number) const;
  // Puts the part of a chunk that lies inside the array in its place.
  void place(int64_t number, const std::byte* from, std::byte* to) const;

 private:
  const ArrayShape& shape_;
  std::vector<int64_t> chunk_, counts_;
  double exact_ = 1, chunk_bytes_ = 0;
};

// Where one chunk is stored and which filters were skipped for it.
struct ChunkPlace {
  uint64_t address = kNowhere, bytes = 0;
  uint32_t skipped = 0;
};
std::vector<ChunkPlace> find_chunks(const Source& source, const Layout& layout, const ChunkGrid& grid,
                                    const std::string& where);

// Refuses an array that claims more than the file can hold or the limit allows, before anything is allocated
// for it.
void check_size(const Source& source, const ArrayShape& shape, const Layout& layout, int64_t max_bytes,
                const std::string& where);

// Fills `out` (shape.bytes) with the values in the file's own type and byte order.
void read_raw(const Source& source, const ArrayShape& shape, const Layout& layout, std::byte* out,
              const std::string& where);

}  // namespace pwdice::hdf5
