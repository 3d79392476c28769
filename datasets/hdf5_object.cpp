// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "hdf5_object.h"

#include <algorithm>
#include <bit>
#include <deque>

#include "../kernels/error.h"

namespace pwdice::hdf5 {
namespace {

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
constexpr size_t kMaxMessages = 65536;

uint64_t width(int bytes) { return static_cast<uint64_t>(bytes); }

void set_sizes(Source& source, int offset_bytes, int length_bytes) {
  const auto known = [](int n) { return n == 2 || n == 4 || n == 8; };
  if (!known(offset_bytes) || !known(length_bytes)) source.damaged("the superblock", source.base);
  source.offset_bytes = offset_bytes, source.length_bytes = length_bytes;
}

// Messages of one block of a header. Continuations are put off.
void read_block(Cursor block, int version, bool tracks_order, std::vector<Message>& out,
                std::deque<std::pair<uint64_t, uint64_t>>& later) {
  const uint64_t head = version == 1 ? 8 : tracks_order ? 6 : 4;
  while (block.left() >= head) {
    const uint16_t type = version == 1 ? block.u16() : block.u8();
    const uint64_t bytes = block.u16();
    const uint8_t flags = block.u8();
    block.skip(version == 1 ? 3 : tracks_order ? 2 : 0);
    Message message{static_cast<MessageType>(type), (flags & 2) != 0, block.part(bytes)};
    if (message.type == MessageType::Continuation) {
      const uint64_t address = message.body.offset();
      later.emplace_back(address, message.body.length());
    } else {
      out.push_back(std::move(message));
    }
    if (out.size() + later.size() > kMaxMessages) block.damaged("an object header without end");
  }
}

}  // namespace

uint64_t read_superblock(Source& source) {
  bool found = false;
  for (uint64_t at = 0; !found && at + kSignature.size() + 4 <= source.size(); at = at == 0 ? 512 : 2 * at) {
    Cursor start(source, at, kSignature.size());
    found = start.text(8) == kSignature;
    source.base = at;
  }
  if (!found) fail(ErrorCode::BadFile, "{} is not an HDF5 file", source.name());
  const uint64_t start = source.base;
  Cursor block(source, start, std::min<uint64_t>(source.size() - start, 128));
  block.skip(8);
  const int version = block.u8();
  source.base = 0;  // until it is known, addresses are as written
  uint64_t base = 0, end = 0, root = 0;
  if (version <= 1) {
    block.skip(4);
    const int o = block.u8();
    set_sizes(source, o, block.u8());
    block.skip(version == 0 ? 9 : 13);
    base = block.number(source.offset_bytes);
    block.skip(width(source.offset_bytes));
    end = block.number(source.offset_bytes);
    block.skip(2 * width(source.offset_bytes));
    root = block.number(source.offset_bytes);
  } else if (version <= 3) {
    const int o = block.u8();
    set_sizes(source, o, block.u8());
    block.skip(1);
    base = block.number(source.offset_bytes);
    block.skip(width(source.offset_bytes));
    end = block.number(source.offset_bytes);
    root = block.number(source.offset_bytes);
  } else {
    fail(ErrorCode::BadFile, "{} has version {} of the HDF5 superblock, expected 0 to 3", source.name(),
         version);
  }
  // The base address written in a file with a user block is where the block ends, or 0 when it was added
  // later.
  source.base = base == start ? base : start;
  if (end > source.size() || root >= source.size() - source.base) {
    fail(ErrorCode::BadFile, "{} is truncated: it has {} of {} bytes", source.name(), source.size(), end);
  }
  return root + source.base;
}

std::vector<Message> read_header(const Source& source, uint64_t address) {
  std::vector<Message> out;
  std::deque<std::pair<uint64_t, uint64_t>> later;
  if (address >= source.size()) source.damaged("an object header", address);
  Cursor start(source, address, std::min<uint64_t>(source.size() - address, 64));
  int version = start.u8();
  bool tracks_order = false;
  if (version == 1) {
    start.skip(7);
    read_block(Cursor(source, address + 16, start.u32()), 1, false, out, later);
  } else {
    start = Cursor(source, address, start.left() + 1);
    start.expect("OHDR", "an object header");
    version = start.u8();
    const uint8_t flags = start.u8();
    if (version != 2) start.damaged("an object header of unknown version");
    tracks_order = (flags & 4) != 0;
    start.skip((flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0));
    const uint64_t bytes = start.number(1 << (flags & 3));
    read_block(Cursor(source, address + start.at(), bytes), 2, tracks_order, out, later);
  }
  for (size_t blocks = 0; !later.empty(); ++blocks) {
    const auto [at, bytes] = later.front();
    later.pop_front();
    if (blocks > kMaxMessages || at == kNowhere) source.damaged("an object header without end", address);
    Cursor block(source, at, bytes);
    if (version == 2) {
      block.expect("OCHK", "a continued object header");
      if (block.left() < 4) block.damaged("a continued object header");
      block = block.part(block.left() - 4);  // the checksum
    }
    read_block(std::move(block), version, tracks_order, out, later);
  }
  return out;
}

const Message& require(const std::vector<Message>& header, MessageType type, const std::string& where) {
  for (const Message& message : header) {
    if (message.type != type) continue;
    if (message.shared) fail(ErrorCode::BadFile, "{} uses a named or shared type, which is not read", where);
    return message;
  }
  fail(ErrorCode::BadFile, "{} is not an array", where);
}

Encoding read_datatype(Cursor body, const std::string& where) {
  const int kind = body.u8() & 15;
  const uint32_t bits = static_cast<uint32_t>(body.number(3));
  const uint64_t size = body.u32();
  const bool big = (bits & 1) != 0;
  const bool swapped = size > 1 && big != (std::endian::native == std::endian::big);
  const auto unknown = [&] {
    fail(ErrorCode::BadFile, "{} has a type other than 32- or 64-bit floats, integers, bools and strings",
         where);
  };
  switch (kind) {
    case 0: {  // integer
      const uint16_t offset = body.u16(), precision = body.u16();
      if (!std::has_single_bit(size) || size > 8 || offset != 0 || precision != 8 * size) unknown();
      return {Hdf5Type::Integer, size, (bits & 8) != 0, swapped};
    }
    case 1: {  // IEEE binary32 or binary64, told by where exponent and mantissa are
      const uint16_t offset = body.u16(), precision = body.u16();
      const uint32_t fields = body.u32();
      const uint32_t ieee = size == 4 ? 0x17000817u : 0x34000b34u;
      const bool vax = (bits & 0x40) != 0;
      if ((size != 4 && size != 8) || offset != 0 || precision != 8 * size || fields != ieee || vax)
        unknown();
      return {Hdf5Type::Float, size, true, swapped};
    }
    case 3:
      if (size == 0) unknown();
      return {Hdf5Type::String, size};
    case 8: {  // enum over an integer of one byte
      const Encoding base = read_datatype(body.part(body.left()), where);
      if (size != 1 || base.type != Hdf5Type::Integer || base.item != 1) unknown();
      return {Hdf5Type::Bool, 1};
    }
    case 9:
      if ((bits & 15) != 1) unknown();
      return {Hdf5Type::String, size, false, false, true};
    default:
      unknown();
  }
  return {};
}

std::vector<int64_t> read_dataspace(Cursor body, int64_t max_values, const std::string& where) {
  constexpr int kMaxRank = 8;
  const int version = body.u8(), rank = body.u8();
  body.skip(1);
  const int kind = body.u8();
  if (version != 1 && version != 2) body.damaged("an array's shape");
  if (version == 1) body.skip(4);
  if (version == 2 && kind == 2) fail(ErrorCode::BadFile, "{} is empty", where);
  if (rank > kMaxRank) fail(ErrorCode::BadFile, "{} has rank {}, the limit is {}", where, rank, kMaxRank);
  std::vector<int64_t> shape;
  double total = 1;
  for (int k = 0; k < rank; ++k) {
    const uint64_t side = body.length();
    total *= static_cast<double>(std::max<uint64_t>(side, 1));
    if (total > static_cast<double>(max_values)) {
      fail(ErrorCode::BadFile, "{} is too large: the limit is {} values", where, max_values);
    }
    shape.push_back(static_cast<int64_t>(side));
  }
  return shape;
}

}  // namespace pwdice::hdf5
