// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Where an array keeps its values and which filters they went through.
#include "../kernels/error.h"
#include "hdf5_object.h"

namespace pwdice::hdf5 {
namespace {

std::vector<Filter> read_filters(Cursor body, const std::string& where) {
  std::vector<Filter> out;
  const int version = body.u8(), count = body.u8();
  if (version != 1 && version != 2) body.damaged("a list of filters");
  if (version == 1) body.skip(6);
  for (int k = 0; k < count; ++k) {
    const uint16_t id = body.u16();
    const uint64_t name = version == 1 || id >= 256 ? body.u16() : 0;
    body.skip(2);
    const uint64_t values = body.u16();
    body.skip(version == 1 ? (name + 7) / 8 * 8 : name);
    body.skip(4 * values + (version == 1 && values % 2 == 1 ? 4 : 0));
    if (id != static_cast<uint16_t>(Filter::Deflate) && id != static_cast<uint16_t>(Filter::Shuffle)) {
      fail(ErrorCode::BadFile, "{} uses filter {}; only deflate (1) and shuffle (2) are read", where, id);
    }
    out.push_back(static_cast<Filter>(id));
  }
  if (out.size() > 8) fail(ErrorCode::BadFile, "{} has {} filters, expected at most 8", where, out.size());
  return out;
}

void add_chunk_side(Layout& layout, uint64_t side, const std::string& where) {
  if (side == 0 || side > (uint64_t{1} << 40))
    fail(ErrorCode::BadFile, "{} has chunks of size {}", where, side);
  layout.chunk.push_back(static_cast<int64_t>(side));
}

// Versions 1 and 2: all classes share one list of sizes.
void read_old(Cursor& body, Layout& layout, const std::string& where) {
  const int rank = body.u8(), kind = body.u8();
  body.skip(5);
  layout.storage = static_cast<Storage>(kind);
  if (kind != 0) layout.address = body.offset();
  uint64_t bytes = 1;
  for (int k = 0; k < rank; ++k) {
    const uint64_t side = body.u32();
    if (kind == 2 && k + 1 < rank) add_chunk_side(layout, side, where);
    bytes *= side > 0 && bytes > ~uint64_t{0} / side ? 0 : side;
  }
  layout.bytes = bytes;
  if (kind != 0) return;
  const std::span<const std::byte> data = body.take(body.u32());
  layout.compact.assign(data.begin(), data.end());
}

// Version 4: each kind of chunk index has its own parameters.
void read_chunk_index(Cursor& body, Layout& layout, const std::string& where) {
  const uint8_t flags = body.u8();
  const int rank = body.u8(), side_bytes = body.u8();
  if (side_bytes < 1 || side_bytes > 8) body.damaged("an array's chunks");
  for (int k = 0; k < rank; ++k) {
    const uint64_t side = body.number(side_bytes);
    if (k + 1 < rank) add_chunk_side(layout, side, where);
  }
  const int kind = body.u8();
  if (kind < 1 || kind > 3) {
    fail(ErrorCode::BadFile, "{} has chunks that can grow in the newest format; rewrite it with h5repack",
         where);
  }
  layout.index = static_cast<ChunkIndex>(kind);
  if (layout.index == ChunkIndex::Single && (flags & 2) != 0) {
    layout.single_bytes = body.length();
    layout.single_skipped = body.u32();
  }
  if (layout.index == ChunkIndex::FixedArray) body.skip(1);
  layout.address = body.offset();
}

void read_new(Cursor& body, int version, Layout& layout, const std::string& where) {
  const int kind = body.u8();
  layout.storage = static_cast<Storage>(kind);
  if (kind == 0) {
    const std::span<const std::byte> data = body.take(body.u16());
    layout.compact.assign(data.begin(), data.end());
  } else if (kind == 1) {
    layout.address = body.offset();
    layout.bytes = body.length();
  } else if (kind == 2 && version == 3) {
    const int rank = body.u8();
    layout.address = body.offset();
    for (int k = 0; k + 1 < rank; ++k) add_chunk_side(layout, body.u32(), where);
  } else if (kind == 2) {
    read_chunk_index(body, layout, where);
  } else {
    fail(ErrorCode::BadFile, "{} is a virtual array that keeps its data elsewhere", where);
  }
}

}  // namespace

Layout read_layout(const std::vector<Message>& header, const std::string& where) {
  Layout layout;
  for (const Message& message : header) {
    if (message.type == MessageType::ExternalFiles) {
      fail(ErrorCode::BadFile, "{} keeps its data in another file", where);
    }
    if (message.type != MessageType::Filters) continue;
    if (message.shared) fail(ErrorCode::BadFile, "{} shares its filters with other objects", where);
    layout.filters = read_filters(message.body, where);
  }
  Cursor body = require(header, MessageType::Layout, where).body;
  const int version = body.u8();
  if (version < 1 || version > 4) {
    fail(ErrorCode::BadFile, "{} has version {} of the layout, expected 1 to 4; rewrite it with h5repack", where,
         version);
  }
  version <= 2 ? read_old(body, layout, where) : read_new(body, version, layout, where);
  if (static_cast<int>(layout.storage) > 2) body.damaged("an array's layout");
  if (layout.storage != Storage::Chunked) layout.filters.clear();
  return layout;
}

}  // namespace pwdice::hdf5
