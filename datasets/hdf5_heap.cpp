// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "hdf5_heap.h"

#include <algorithm>
#include <bit>

#include "../kernels/error.h"

namespace pwdice::hdf5 {
namespace {

constexpr uint64_t kMaxText = uint64_t{1} << 26;
constexpr int kMaxDepth = 32;

int log2_floor(uint64_t value) { return value == 0 ? 0 : static_cast<int>(std::bit_width(value)) - 1; }
int bytes_for(uint64_t limit) { return log2_floor(limit) / 8 + 1; }  // to store numbers up to `limit`

}  // namespace

LocalHeap::LocalHeap(const Source& source, uint64_t address) : source_(source) {
  Cursor header(
      source, address,
      8 + 2 * static_cast<uint64_t>(source.length_bytes) + static_cast<uint64_t>(source.offset_bytes));
  header.expect("HEAP", "a heap of names");
  header.skip(4);
  const uint64_t bytes = header.length();
  header.length();
  const uint64_t data = header.offset();
  if (data == kNowhere) header.damaged("a heap of names");
  Cursor names(source, data, bytes);
  const std::span<const std::byte> all = names.take(bytes);
  data_.assign(all.begin(), all.end());
}

std::string LocalHeap::name(uint64_t offset) const {
  if (offset >= data_.size()) source_.damaged("a name outside its heap", offset);
  const auto begin = data_.begin() + static_cast<int64_t>(offset);
  const auto end = std::find(begin, data_.end(), std::byte{0});
  std::string out;
  for (auto c = begin; c != end; ++c) out += static_cast<char>(*c);
  return out;
}

std::string global_heap_text(const Source& source, uint64_t collection, uint32_t index) {
  const uint64_t header_bytes = 8 + static_cast<uint64_t>(source.length_bytes);
  Cursor header(source, collection, header_bytes);
  header.expect("GCOL", "a heap of strings");
  header.skip(4);
  const uint64_t bytes = header.length();
  if (bytes < header_bytes || bytes > kMaxText) header.damaged("a heap of strings");
  Cursor objects(source, collection + header_bytes, bytes - header_bytes);
  while (objects.left() >= header_bytes) {
    const uint16_t number = objects.u16();
    objects.skip(6);
    const uint64_t size = objects.length();
    if (number == 0) break;
    if (number == index) return objects.text(size);
    objects.skip(size);
    objects.skip(std::min<uint64_t>((8 - size % 8) % 8, objects.left()));
  }
  header.damaged("a string that is not in its heap");
}

FractalHeap::FractalHeap(const Source& source, uint64_t address) : source_(source), address_(address) {
  const uint64_t l = static_cast<uint64_t>(source.length_bytes),
                 o = static_cast<uint64_t>(source.offset_bytes);
  Cursor header(source, address, 22 + 12 * l + 3 * o);
  header.expect("FRHP", "a fractal heap");
  header.skip(1 + 2);
  if (header.u16() != 0) header.damaged("a fractal heap with filters, which are not read,");
  header.skip(1);
  max_managed_ = header.u32();
  header.skip(l + o + l + o + 8 * l);
  width_ = header.u16();
  start_bytes_ = header.length(), max_direct_bytes_ = header.length();
  heap_bits_ = header.u16();
  header.skip(2);
  root_ = header.offset();
  root_rows_ = header.u16();
  const bool sane = std::has_single_bit(width_) && std::has_single_bit(start_bytes_) &&
                    std::has_single_bit(max_direct_bytes_) && start_bytes_ <= max_direct_bytes_ &&
                    max_direct_bytes_ <= (uint64_t{1} << 32) && heap_bits_ >= 1 && heap_bits_ <= 64 &&
                    root_rows_ <= 64 && root_ != kNowhere;
  if (!sane) header.damaged("a fractal heap");
}

// The direct block that holds heap offset `offset`, and the heap offset it begins at.
uint64_t FractalHeap::find_block(uint64_t offset, uint64_t* block_offset) const {
  const uint64_t o = static_cast<uint64_t>(source_.offset_bytes);
  const uint64_t offset_bytes = static_cast<uint64_t>(heap_bits_ + 7) / 8;
  const uint64_t direct_rows =
      static_cast<uint64_t>(log2_floor(max_direct_bytes_) - log2_floor(start_bytes_) + 2);
  uint64_t block = root_, rows = root_rows_, begin = 0;
  for (int depth = 0; rows > 0; ++depth) {
    if (depth > kMaxDepth) source_.damaged("a fractal heap without end", block);
    const uint64_t inside = offset - begin;
    const uint64_t row = inside < width_ * start_bytes_
                             ? 0
                             : static_cast<uint64_t>(log2_floor(inside / (width_ * start_bytes_))) + 1;
    if (row >= rows) source_.damaged("an object outside its fractal heap", block);
    const uint64_t row_begin = row == 0 ? 0 : (width_ * start_bytes_) << (row - 1);
    const uint64_t column = (inside - row_begin) / row_bytes(row);
    Cursor check(source_, block, 4);
    check.expect("FHIB", "a block of a fractal heap");
    Cursor entry(source_, block + 5 + o + offset_bytes + (row * width_ + column) * o, o);
    block = entry.offset();
    if (block == kNowhere) source_.damaged("an object outside its fractal heap", address_);
    begin += row_begin + column * row_bytes(row);
    rows = row < direct_rows
               ? 0
               : static_cast<uint64_t>(log2_floor(row_bytes(row)) - log2_floor(start_bytes_ * width_)) + 1;
  }
  *block_offset = begin;
  return block;
}

Cursor FractalHeap::object(std::span<const std::byte> id) const {
  Cursor fields(source_, {id.begin(), id.end()}, address_);
  const int kind = fields.u8() >> 4 & 3;
  if (kind == 2) {  // tiny: the object itself; its length less one is in the low bits of the first byte
    return fields.part((std::to_integer<uint64_t>(id[0]) & 15) + 1);
  }
  if (kind != 0) source_.damaged("a huge object of a fractal heap, which is not read,", address_);
  const uint64_t offset = fields.number((heap_bits_ + 7) / 8);
  const uint64_t bytes = fields.number(std::min(bytes_for(max_direct_bytes_), bytes_for(max_managed_)));
  uint64_t begin = 0;
  const uint64_t block = find_block(offset, &begin);
  Cursor check(source_, block, 4);
  check.expect("FHDB", "a block of a fractal heap");
  if (offset - begin > max_direct_bytes_) source_.damaged("an object outside its fractal heap", block);
  return {source_, block + (offset - begin), bytes};
}

namespace {

struct Tree {
  const Source& source;
  uint64_t node_bytes = 0, record_bytes = 0, limit = 0, seen = 0, nodes = 0;
  std::vector<int> total_bytes = {};  // of the "records below" field, by depth of the child
  int count_bytes = 0;
  const std::function<void(Cursor&)>& record;

  void visit(uint64_t address, uint64_t records, int depth) {
    if (++nodes > 2 * limit + 64) source.damaged("a tree without end", address);
    if (address == kNowhere || records * record_bytes > node_bytes)
      source.damaged("a node of a tree", address);
    Cursor node(source, address, std::min(node_bytes, source.size() - std::min(address, source.size())));
    node.expect(depth == 0 ? "BTLF" : "BTIN", "a node of a tree");
    node.skip(2);
    for (uint64_t k = 0; k < records; ++k) {
      if (++seen > limit) source.damaged("a tree with too many records", address);
      Cursor fields = node.part(record_bytes);
      record(fields);
    }
    if (depth == 0) return;
    for (uint64_t k = 0; k <= records; ++k) {
      const uint64_t child = node.offset(), count = node.number(count_bytes);
      if (depth > 1) node.skip(static_cast<uint64_t>(total_bytes[depth - 1]));
      visit(child, count, depth - 1);
    }
  }
};

}  // namespace

void each_record(const Source& source, uint64_t address, uint64_t limit,
                 const std::function<void(Cursor& record)>& record) {
  const uint64_t o = static_cast<uint64_t>(source.offset_bytes),
                 l = static_cast<uint64_t>(source.length_bytes);
  Cursor header(source, address, 18 + o + l);
  header.expect("BTHD", "the head of a tree");
  header.skip(2);
  Tree tree{.source = source, .limit = limit, .record = record};
  tree.node_bytes = header.u32(), tree.record_bytes = header.u16();
  const int depth = header.u16();
  header.skip(2);
  const uint64_t root = header.offset(), records = header.u16();
  constexpr uint64_t kPrefix = 10;  // signature, version, type, checksum
  if (tree.record_bytes == 0 || tree.node_bytes <= kPrefix + tree.record_bytes || depth > kMaxDepth) {
    header.damaged("the head of a tree");
  }
  if (records == 0) return;
  // Field widths depend on how many records fit below: see the format's description of child pointers.
  double below = static_cast<double>((tree.node_bytes - kPrefix) / tree.record_bytes);
  tree.count_bytes = bytes_for(static_cast<uint64_t>(below));
  tree.total_bytes.push_back(0);
  for (int level = 1; level < depth; ++level) {
    const uint64_t pointer = o + static_cast<uint64_t>(tree.count_bytes + tree.total_bytes.back());
    if (tree.node_bytes <= kPrefix + pointer) header.damaged("the head of a tree");
    const double fit =
        static_cast<double>((tree.node_bytes - kPrefix - pointer) / (tree.record_bytes + pointer));
    below = std::min((fit + 1) * below + fit, 0x1p62);
    tree.total_bytes.push_back(bytes_for(static_cast<uint64_t>(below)));
  }
  tree.visit(root, records, depth);
}

}  // namespace pwdice::hdf5
