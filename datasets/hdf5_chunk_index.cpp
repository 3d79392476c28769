// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// From the index of a chunked array to the place of every chunk.
#include <algorithm>
#include <cstring>

#include "../kernels/error.h"
#include "hdf5_chunks.h"

namespace pwdice::hdf5 {

ChunkGrid::ChunkGrid(const ArrayShape& shape, const std::vector<int64_t>& chunk, const std::string& where)
    : shape_(shape), chunk_(chunk), chunk_bytes_(static_cast<double>(shape.item)) {
  if (chunk.empty() || chunk.size() != shape.dims.size()) {
    fail(ErrorCode::BadFile, "{} has rank {} and chunks of rank {}", where, shape.dims.size(), chunk.size());
  }
  for (size_t k = 0; k < chunk.size(); ++k) {
    counts_.push_back((shape.dims[k] + chunk[k] - 1) / chunk[k]);
    exact_ *= static_cast<double>(counts_.back());
    chunk_bytes_ *= static_cast<double>(chunk[k]);
  }
}

int64_t ChunkGrid::number(const std::vector<uint64_t>& offset) const {
  int64_t out = 0;
  for (size_t k = 0; k < chunk_.size(); ++k) {
    const uint64_t side = static_cast<uint64_t>(chunk_[k]);
    if (offset[k] % side != 0 || offset[k] / side >= static_cast<uint64_t>(counts_[k])) return -1;
    out = out * counts_[k] + static_cast<int64_t>(offset[k] / side);
  }
  return out;
}

std::vector<int64_t> ChunkGrid::offset(int64_t number) const {
  std::vector<int64_t> at(chunk_.size());
  for (size_t k = chunk_.size(); k-- > 0; number /= counts_[k]) at[k] = number % counts_[k] * chunk_[k];
  return at;
}

void ChunkGrid::place(int64_t number, const std::byte* from, std::byte* to) const {
  const std::vector<int64_t> corner = offset(number);
  const size_t last = chunk_.size() - 1;
  std::vector<int64_t> extent(chunk_.size()), at(chunk_.size(), 0);
  int64_t runs = 1;
  for (size_t k = 0; k <= last; ++k) {
    extent[k] = std::min(chunk_[k], shape_.dims[k] - corner[k]);
    if (k < last) runs *= extent[k];
  }
  if (last == 1 && chunk_[1] == 1 && shape_.item == 4) {  // h5py likes chunks of one column
    std::byte* column = to + (corner[0] * shape_.dims[1] + corner[1]) * 4;
    for (int64_t i = 0; i < extent[0]; ++i) std::memcpy(column + i * shape_.dims[1] * 4, from + i * 4, 4);
    return;
  }
  const size_t run_bytes = static_cast<size_t>(extent[last] * shape_.item);
  for (int64_t run = 0; run < runs; ++run) {
    int64_t source = 0, target = 0;
    for (size_t k = 0; k <= last; ++k) {
      source = source * chunk_[k] + at[k];
      target = target * shape_.dims[k] + corner[k] + at[k];
    }
    std::memcpy(to + target * shape_.item, from + source * shape_.item, run_bytes);
    for (size_t k = last; k-- > 0;) {
      if (++at[k] < extent[k]) break;
      at[k] = 0;
    }
  }
}

namespace {

// The version 1 B-tree: keys are the size, skipped filters and corner of a chunk, one 8-byte offset for each
// dimension and one, always 0, for the bytes of a value.
struct ChunkTree {
  const Source& source;
  const ChunkGrid& grid;
  size_t rank;
  std::vector<ChunkPlace>& places;
  uint64_t nodes = 0;

  void visit(uint64_t address, int parent_level) {
    const uint64_t o = static_cast<uint64_t>(source.offset_bytes);
    if (address == kNowhere) return;
    if (++nodes > 4 * static_cast<uint64_t>(grid.chunks()) + 64)
      source.damaged("an index without end", address);
    Cursor head(source, address, 8 + 2 * o);
    head.expect("TREE", "the index of an array");
    const int kind = head.u8(), level = head.u8();
    const uint64_t used = head.u16();
    if (kind != 1 || level >= parent_level) head.damaged("the index of an array");
    Cursor entries(source, address + 8 + 2 * o, used * (8 + 8 * (rank + 1) + o));
    for (uint64_t k = 0; k < used; ++k) {
      ChunkPlace place;
      place.bytes = entries.u32();
      place.skipped = entries.u32();
      std::vector<uint64_t> corner(rank);
      for (uint64_t& c : corner) c = entries.number(8);
      entries.skip(8);
      place.address = entries.offset();
      if (place.address == kNowhere) entries.damaged("the index of an array");
      if (level > 0) {
        visit(place.address, level);
        continue;
      }
      const int64_t number = grid.number(corner);
      if (number >= 0) places[number] = place;  // others lie outside: the array has shrunk since
    }
  }
};

// One entry for each chunk in order; long arrays are cut into pages with a bitmap of the pages in use.
void read_fixed_array(const Source& source, const Layout& layout, uint64_t chunk_bytes,
                      std::vector<ChunkPlace>& places) {
  const uint64_t o = static_cast<uint64_t>(source.offset_bytes),
                 l = static_cast<uint64_t>(source.length_bytes);
  Cursor head(source, layout.address, 8 + l + o);
  head.expect("FAHD", "the index of an array");
  head.skip(1);
  const bool filtered = head.u8() == 1;
  const uint64_t entry_bytes = head.u8();
  const int page_bits = head.u8();
  const uint64_t count = head.length(), block = head.offset();
  if (count != places.size() || block == kNowhere || page_bits > 31 || entry_bytes < o + (filtered ? 5 : 0) ||
      entry_bytes > o + 12) {
    head.damaged("the index of an array");
  }
  const uint64_t page = uint64_t{1} << page_bits, pages = count > page ? (count + page - 1) / page : 0;
  uint64_t at = block + 6 + o;
  Cursor start(source, block, 6 + o);
  start.expect("FADB", "the index of an array");
  Cursor bitmap(source, at, (pages + 7) / 8);
  const std::span<const std::byte> in_use = bitmap.take(bitmap.left());
  at += in_use.size() + (pages > 0 ? 4 : 0);  // a checksum follows the bitmap
  for (uint64_t first = 0, k = 0; first < count; first += page, ++k) {
    const uint64_t entries = pages > 0 ? std::min(page, count - first) : count;
    const bool used = pages == 0 || std::to_integer<int>(in_use[k / 8] >> (7 - k % 8) & std::byte{1}) != 0;
    Cursor list(source, at, entries * entry_bytes);
    for (uint64_t i = 0; used && i < entries; ++i) {
      ChunkPlace& place = places[first + i];
      place.address = list.offset();
      place.bytes = filtered ? list.number(static_cast<int>(entry_bytes - o - 4)) : chunk_bytes;
      if (filtered) place.skipped = list.u32();
    }
    at += entries * entry_bytes + 4;
    if (pages == 0) break;
  }
}

}  // namespace

std::vector<ChunkPlace> find_chunks(const Source& source, const Layout& layout, const ChunkGrid& grid,
                                    const std::string& where) {
  std::vector<ChunkPlace> places(grid.chunks());
  const uint64_t chunk_bytes = static_cast<uint64_t>(grid.chunk_bytes());
  switch (layout.address == kNowhere ? ChunkIndex::Implicit : layout.index) {
    case ChunkIndex::Tree:
      ChunkTree{source, grid, layout.chunk.size(), places}.visit(layout.address, 256);
      break;
    case ChunkIndex::Single:
      places[0] = {layout.address, layout.filters.empty() ? chunk_bytes : layout.single_bytes,
                   layout.single_skipped};
      break;
    case ChunkIndex::Implicit:
      for (size_t k = 0; k < places.size() && layout.address != kNowhere; ++k) {
        places[k] = {layout.address + k * chunk_bytes, chunk_bytes, 0};
      }
      break;
    case ChunkIndex::FixedArray:
      read_fixed_array(source, layout, chunk_bytes, places);
      break;
  }
  for (const ChunkPlace& place : places) {
    if (place.address == kNowhere) {
      fail(ErrorCode::BadFile, "{} is incomplete: a part of it was never written", where);
    }
  }
  return places;
}

}  // namespace pwdice::hdf5
