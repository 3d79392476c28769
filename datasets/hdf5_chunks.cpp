// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "hdf5_chunks.h"

#include <libdeflate.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "../kernels/cpu/parallel.h"
#include "../kernels/error.h"

namespace pwdice::hdf5 {
namespace {

constexpr double kBestDeflate = 1032;         // deflate never shrinks by more than this factor
constexpr int64_t kSmall = int64_t{1} << 20;  // not worth a second thread
constexpr int64_t kMaxThreads = 8;

// What one chunk passes through on its way; one per thread.
struct Workspace {
  struct Free {
    void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
  };
  std::unique_ptr<libdeflate_decompressor, Free> inflater;
  std::vector<std::byte> stored, plain;
};

void inflate_chunk(Workspace& work, size_t chunk_bytes, const std::string& where) {
  if (!work.inflater) work.inflater.reset(libdeflate_alloc_decompressor());
  if (!work.inflater) fail(ErrorCode::OutOfMemory, "{} cannot be inflated: out of memory", where);
  work.plain.resize(chunk_bytes);
  const libdeflate_result result = libdeflate_zlib_decompress(
      work.inflater.get(), work.stored.data(), work.stored.size(), work.plain.data(), chunk_bytes, nullptr);
  if (result != LIBDEFLATE_SUCCESS) {
    fail(ErrorCode::BadFile, "{} has a damaged chunk: its compressed data do not give {} bytes", where,
         chunk_bytes);
  }
  std::swap(work.stored, work.plain);
}

// The shuffle filter stores byte 0 of all values, then byte 1 of all, ..; bytes past the last whole value
// stay.
template <size_t kItem>
void unshuffle_items(const std::byte* from, std::byte* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t b = 0; b < kItem; ++b) to[i * kItem + b] = from[b * count + i];
  }
}

void unshuffle(Workspace& work, size_t item) {
  if (item == 1) return;
  const size_t bytes = work.stored.size(), count = bytes / item;
  work.plain.resize(bytes);
  const std::byte* from = work.stored.data();
  std::byte* to = work.plain.data();
  switch (item) {
    case 2:
      unshuffle_items<2>(from, to, count);
      break;
    case 4:
      unshuffle_items<4>(from, to, count);
      break;
    default:
      unshuffle_items<8>(from, to, count);
      break;
  }
  std::copy(from + count * item, from + bytes, to + count * item);
  std::swap(work.stored, work.plain);
}

void read_chunks(const Source& source, const ArrayShape& shape, const Layout& layout, std::byte* out,
                 const std::string& where) {
  const ChunkGrid grid(shape, layout.chunk, where);
  const std::vector<ChunkPlace> places = find_chunks(source, layout, grid, where);
  const size_t chunk_bytes = static_cast<size_t>(grid.chunk_bytes());
  const int64_t cores = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kMaxThreads);
  cpu::ThreadPool pool(static_cast<int>(shape.bytes < kSmall ? 1 : std::min(cores, grid.chunks())));
  std::vector<Workspace> workspaces(pool.threads());
  pool.parallel_for(grid.chunks(), [&](int64_t number, int thread) {
    Workspace& work = workspaces[thread];
    const ChunkPlace& place = places[number];
    if (place.bytes > chunk_bytes + chunk_bytes / 100 + 4096) {
      fail(ErrorCode::BadFile, "{} has a damaged chunk: {} bytes stored for {}", where, place.bytes,
           chunk_bytes);
    }
    work.stored.resize(place.bytes);
    source.read(place.address, work.stored);
    for (size_t k = layout.filters.size(); k-- > 0;) {
      if (place.skipped >> k & 1) continue;
      layout.filters[k] == Filter::Deflate ? inflate_chunk(work, chunk_bytes, where)
                                           : unshuffle(work, static_cast<size_t>(shape.item));
    }
    if (work.stored.size() != chunk_bytes) {
      fail(ErrorCode::BadFile, "{} has a damaged chunk: {} bytes instead of {}", where, work.stored.size(),
           chunk_bytes);
    }
    grid.place(number, work.stored.data(), out);
  });
}

}  // namespace

void check_size(const Source& source, const ArrayShape& shape, const Layout& layout, int64_t max_bytes,
                const std::string& where) {
  double claimed = static_cast<double>(shape.bytes);
  if (layout.storage == Storage::Chunked) {
    const ChunkGrid grid(shape, layout.chunk, where);
    const bool deflated =
        std::find(layout.filters.begin(), layout.filters.end(), Filter::Deflate) != layout.filters.end();
    const double index = grid.chunks_exactly() * static_cast<double>(sizeof(ChunkPlace));
    if (std::max(grid.chunk_bytes(), index) > static_cast<double>(max_bytes)) {
      fail(ErrorCode::BadFile, "{} has chunks too large or too many for the limit of {} bytes", where,
           max_bytes);
    }
    claimed = grid.chunks_exactly() * std::max(1.0, grid.chunk_bytes() / (deflated ? kBestDeflate : 1));
  } else {
    const bool compact = layout.storage == Storage::Compact;
    const uint64_t held = compact ? layout.compact.size() : layout.address == kNowhere ? 0 : layout.bytes;
    if (held < static_cast<uint64_t>(shape.bytes)) {
      fail(ErrorCode::BadFile, "{} is incomplete: of its {} bytes only {} were written", where, shape.bytes,
           held);
    }
  }
  if (claimed > static_cast<double>(source.size())) {
    fail(ErrorCode::BadFile, "{} claims {} bytes, more than a file of {} can hold", where, shape.bytes,
         source.size());
  }
}

void read_raw(const Source& source, const ArrayShape& shape, const Layout& layout, std::byte* out,
              const std::string& where) {
  if (shape.bytes == 0) return;
  const size_t bytes = static_cast<size_t>(shape.bytes);
  switch (layout.storage) {
    case Storage::Compact:
      std::copy_n(layout.compact.begin(), bytes, out);
      break;
    case Storage::Contiguous:
      source.read(layout.address, {out, bytes});
      break;
    case Storage::Chunked:
      read_chunks(source, shape, layout, out, where);
      break;
  }
}

}  // namespace pwdice::hdf5
