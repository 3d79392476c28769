// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "hdf5_chunks.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

#include "../kernels/cpu/parallel.h"
#include "../kernels/error.h"

namespace pwdice::hdf5 {
namespace {

constexpr int64_t kBestDeflate = 1032;        // deflate never shrinks by more than this factor
constexpr int64_t kSmall = int64_t{1} << 20;  // not worth a second thread
constexpr int64_t kMaxThreads = 8;

void check_filters(hid_t plist, ArrayLayout& layout, const std::string& where) {
  const int count = H5Pget_nfilters(plist);
  if (count < 0 || count > 8) fail(ErrorCode::BadFile, "{} has {} filters, expected at most 8", where, count);
  for (int k = 0; k < count; ++k) {
    unsigned flags = 0, config = 0, values[8] = {};
    size_t value_count = 8;
    char name[1] = {};
    const H5Z_filter_t id = H5Pget_filter2(plist, static_cast<unsigned>(k), &flags, &value_count, values,
                                           sizeof name, name, &config);
    if (id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_SHUFFLE) {
      fail(ErrorCode::BadFile, "{} uses filter {}; only deflate (1) and shuffle (2) are read", where, id);
    }
    layout.filters.push_back(id);
  }
}

// What one chunk passes through on its way; one per thread.
struct Workspace {
  struct Free {
    void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
  };
  std::unique_ptr<libdeflate_decompressor, Free> inflater{libdeflate_alloc_decompressor()};
  std::vector<std::byte> stored, plain, spare;
};

void inflate_chunk(Workspace& work, size_t chunk_bytes, const std::string& where) {
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
  work.spare.resize(bytes);
  const std::byte* from = work.stored.data();
  std::byte* to = work.spare.data();
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
  std::swap(work.stored, work.spare);
}

template <size_t kItem>
void copy_column(const std::byte* from, std::byte* to, int64_t rows, int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) std::memcpy(to + i * to_stride, from + i * kItem, kItem);
}

// The grid of chunks over an array.
class Grid {
 public:
  Grid(const ArrayShape& shape, const ArrayLayout& layout) : shape_(shape), chunk_(layout.chunk) {
    for (size_t k = 0; k < chunk_.size(); ++k) {
      counts_.push_back((shape.dims[k] + chunk_[k] - 1) / chunk_[k]);
      chunks_ *= counts_.back();
    }
  }
  int64_t chunks() const { return chunks_; }

  std::vector<hsize_t> offset(int64_t number) const {
    std::vector<hsize_t> at(chunk_.size());
    for (size_t k = chunk_.size(); k-- > 0; number /= counts_[k]) {
      at[k] = static_cast<hsize_t>(number % counts_[k] * chunk_[k]);
    }
    return at;
  }

  // Puts the part of a chunk that lies inside the array in its place, along the last dimension run by run.
  void place(const std::vector<hsize_t>& offset, const std::byte* from, std::byte* to) const {
    const size_t last = chunk_.size() - 1;
    std::vector<int64_t> extent(chunk_.size()), at(chunk_.size(), 0);
    int64_t runs = 1;
    for (size_t k = 0; k <= last; ++k) {
      extent[k] = std::min(chunk_[k], shape_.dims[k] - static_cast<int64_t>(offset[k]));
      if (k < last) runs *= extent[k];
    }
    if (last == 1 && chunk_[1] == 1 && shape_.item == 4) {  // h5py likes chunks of one column
      const int64_t begin =
          static_cast<int64_t>(offset[0]) * shape_.dims[1] + static_cast<int64_t>(offset[1]);
      return copy_column<4>(from, to + begin * 4, extent[0], shape_.dims[1] * 4);
    }
    const size_t run_bytes = static_cast<size_t>(extent[last] * shape_.item);
    for (int64_t run = 0; run < runs; ++run) {
      int64_t source = 0, target = 0;
      for (size_t k = 0; k <= last; ++k) {
        source = source * chunk_[k] + at[k];
        target = target * shape_.dims[k] + static_cast<int64_t>(offset[k]) + at[k];
      }
      std::memcpy(to + target * shape_.item, from + source * shape_.item, run_bytes);
      for (size_t k = last; k-- > 0;) {
        if (++at[k] < extent[k]) break;
        at[k] = 0;
      }
    }
  }

 private:
  const ArrayShape& shape_;
  const std::vector<int64_t>& chunk_;
  std::vector<int64_t> counts_;
  int64_t chunks_ = 1;
};

// The stored bytes of one chunk, and which filters were skipped for it.
uint32_t fetch(hid_t dataset, const std::vector<hsize_t>& offset, size_t chunk_bytes, Workspace& work,
               const std::string& where) {
  const Session session;
  hsize_t size = 0;
  uint32_t skipped = 0;
  if (H5Dget_chunk_storage_size(dataset, offset.data(), &size) < 0 || size == 0) {
    fail(ErrorCode::BadFile, "{} is incomplete: a part of it was never written", where);
  }
  if (size > chunk_bytes + chunk_bytes / 100 + 4096) {
    fail(ErrorCode::BadFile, "{} has a damaged chunk: {} bytes stored for {}", where, size, chunk_bytes);
  }
  work.stored.resize(size);
  if (H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &skipped, work.stored.data()) < 0) {
    fail(ErrorCode::BadFile, "{} cannot be read: the file is damaged or truncated", where);
  }
  return skipped;
}

void read_chunks(hid_t dataset, const ArrayShape& shape, const ArrayLayout& layout, std::byte* out,
                 const std::string& where) {
  const Grid grid(shape, layout);
  size_t chunk_bytes = static_cast<size_t>(shape.item);
  for (const int64_t c : layout.chunk) chunk_bytes *= static_cast<size_t>(c);
  const int64_t cores = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kMaxThreads);
  cpu::ThreadPool pool(static_cast<int>(shape.bytes < kSmall ? 1 : std::min(cores, grid.chunks())));
  std::vector<Workspace> workspaces(pool.threads());
  pool.parallel_for(grid.chunks(), [&](int64_t number, int thread) {
    Workspace& work = workspaces[thread];
    const std::vector<hsize_t> offset = grid.offset(number);
    const uint32_t skipped = fetch(dataset, offset, chunk_bytes, work, where);
    for (size_t k = layout.filters.size(); k-- > 0;) {
      if (skipped >> k & 1) continue;
      layout.filters[k] == H5Z_FILTER_DEFLATE ? inflate_chunk(work, chunk_bytes, where)
                                              : unshuffle(work, static_cast<size_t>(shape.item));
    }
    if (work.stored.size() != chunk_bytes) {
      fail(ErrorCode::BadFile, "{} has a damaged chunk: {} bytes instead of {}", where, work.stored.size(),
           chunk_bytes);
    }
    grid.place(offset, work.stored.data(), out);
  });
}

}  // namespace

ArrayLayout check_storage(hid_t dataset, const std::string& where) {
  ArrayLayout layout;
  const Handle plist(H5Dget_create_plist(dataset), H5Pclose);
  if (!plist) fail(ErrorCode::BadFile, "{} cannot be read: its header is damaged", where);
  if (H5Pget_external_count(plist) != 0) fail(ErrorCode::BadFile, "{} keeps its data in another file", where);
  check_filters(plist, layout, where);
  const H5D_layout_t kind = H5Pget_layout(plist);
  if (kind == H5D_CHUNKED) {
    hsize_t chunk[H5S_MAX_RANK];
    const int rank = H5Pget_chunk(plist, H5S_MAX_RANK, chunk);
    if (rank < 1) fail(ErrorCode::BadFile, "{} cannot be read: its header is damaged", where);
    for (int k = 0; k < rank; ++k) layout.chunk.push_back(static_cast<int64_t>(chunk[k]));
  } else if (kind != H5D_CONTIGUOUS && kind != H5D_COMPACT) {
    fail(ErrorCode::BadFile, "{} is a virtual array that keeps its data elsewhere", where);
  }
  return layout;
}

void check_size(hid_t dataset, const ArrayShape& shape, const ArrayLayout& layout, int64_t file_bytes,
                const std::string& where) {
  const int64_t stored = static_cast<int64_t>(H5Dget_storage_size(dataset));
  double claimed = static_cast<double>(shape.bytes);
  if (!layout.chunk.empty()) {
    if (layout.chunk.size() != shape.dims.size()) {
      fail(ErrorCode::BadFile, "{} has rank {} and chunks of rank {}", where, shape.dims.size(),
           layout.chunk.size());
    }
    claimed = static_cast<double>(shape.item);
    double chunks = 1;
    for (size_t k = 0; k < layout.chunk.size(); ++k) {
      const int64_t side = layout.chunk[k];
      if (side < 1) fail(ErrorCode::BadFile, "{} has chunks of size {}", where, side);
      chunks *= static_cast<double>((shape.dims[k] + side - 1) / side);
      claimed *= static_cast<double>((shape.dims[k] + side - 1) / side) * static_cast<double>(side);
    }
    claimed = std::max(claimed / kBestDeflate, chunks);
  }
  if (stored < 0 || stored > file_bytes || claimed > static_cast<double>(stored)) {
    fail(ErrorCode::BadFile, "{} claims {} bytes, but the file holds only {} for it", where, shape.bytes,
         std::clamp<int64_t>(stored, 0, file_bytes));
  }
}

void read_raw(hid_t dataset, hid_t type, const ArrayShape& shape, const ArrayLayout& layout, std::byte* out,
              const std::string& where) {
  if (shape.bytes == 0) return;
  if (!layout.chunk.empty()) return read_chunks(dataset, shape, layout, out, where);
  const Session session;
  if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0) {
    fail(ErrorCode::BadFile, "{} cannot be read: the file is damaged or truncated", where);
  }
}

}  // namespace pwdice::hdf5
