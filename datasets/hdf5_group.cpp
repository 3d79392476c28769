// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// What hangs on an object by name: the links of a group and attributes. Few of them stand in the object's
// header, many in a fractal heap with a B-tree over it, and old-style groups have a B-tree over tables of
// symbols.
#include <algorithm>

#include "../kernels/error.h"
#include "hdf5_heap.h"
#include "hdf5_object.h"

namespace pwdice::hdf5 {
namespace {

constexpr uint64_t kHard = 0;
constexpr uint64_t kMaxAttributes = 65536;

const Message* find(const std::vector<Message>& header, MessageType type) {
  const auto at =
      std::find_if(header.begin(), header.end(), [&](const Message& m) { return m.type == type; });
  return at == header.end() ? nullptr : &*at;
}

Link read_link(Cursor body) {
  if (body.u8() != 1) body.damaged("a link of unknown version");
  const uint8_t flags = body.u8();
  const uint64_t kind = flags & 8 ? body.u8() : kHard;
  body.skip((flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0));
  const uint64_t length = body.number(1 << (flags & 3));
  Link link{body.text(length)};
  if (kind == kHard) link.address = body.offset();
  return link;
}

struct SymbolTables {
  const Source& source;
  const LocalHeap names;
  uint64_t limit;
  std::vector<Link> links = {};
  uint64_t nodes = 0;

  // A node of the B-tree: children are nodes of the level below, and tables of symbols at the bottom.
  void visit(uint64_t address, int parent_level) {
    const uint64_t o = static_cast<uint64_t>(source.offset_bytes),
                   l = static_cast<uint64_t>(source.length_bytes);
    if (++nodes > 2 * limit + 64) source.damaged("a group without end", address);
    Cursor head(source, address, 8 + 2 * o);
    head.expect("TREE", "the index of a group");
    const int kind = head.u8(), level = head.u8();
    const uint64_t used = head.u16();
    if (kind != 0 || level >= parent_level) head.damaged("the index of a group");
    Cursor entries(source, address + 8 + 2 * o, used * (l + o));
    for (uint64_t k = 0; k < used; ++k) {
      entries.skip(l);
      const uint64_t child = entries.offset();
      if (child == kNowhere) entries.damaged("the index of a group");
      level > 0 ? visit(child, level) : read_table(child);
    }
  }

  void read_table(uint64_t address) {
    constexpr uint32_t kSoftLink = 2;
    if (++nodes > 2 * limit + 64) source.damaged("a group without end", address);
    const uint64_t entry_bytes = 2 * static_cast<uint64_t>(source.offset_bytes) + 24;
    Cursor head(source, address, 8);
    head.expect("SNOD", "a table of symbols");
    head.skip(2);
    const uint64_t count = head.u16();
    Cursor entries(source, address + 8, count * entry_bytes);
    for (uint64_t k = 0; k < count; ++k) {
      const uint64_t name = entries.number(source.offset_bytes);
      const uint64_t object = entries.offset();
      const bool soft = entries.u32() == kSoftLink;
      entries.skip(20);
      if (links.size() >= limit) entries.damaged("a group with too many members");
      links.push_back({names.name(name), soft ? kNowhere : object});
    }
  }
};

// Fractal heap and name index of a group's links or an object's attributes, from the info message.
struct Dense {
  uint64_t heap = kNowhere, index = kNowhere;
};
Dense read_dense(const std::vector<Message>& header, MessageType type, uint64_t order_bytes) {
  const Message* info = find(header, type);
  if (info == nullptr) return {};
  Cursor body = info->body;
  body.skip(1);
  body.skip(body.u8() & 1 ? order_bytes : 0);
  Dense out;
  out.heap = body.offset();
  out.index = body.offset();
  return out;
}

Attribute read_attribute(Cursor body) {
  Attribute out;
  const uint64_t start = body.at();
  const int version = body.u8();
  const uint8_t flags = body.u8();
  const uint64_t name = body.u16(), datatype = body.u16(), dataspace = body.u16();
  if (version < 1 || version > 3 || (version > 1 && flags != 0))
    body.damaged("an attribute with a named type");
  if (version == 3) body.skip(1);
  const auto pad = [&] {
    if (version == 1) body.align(8, start);
  };
  out.name = body.text(name), pad();
  out.datatype = body.part(datatype), pad();
  out.dataspace = body.part(dataspace), pad();
  out.data = body.part(body.left());
  return out;
}

}  // namespace

bool is_group(const std::vector<Message>& header) {
  return find(header, MessageType::SymbolTable) != nullptr ||
         find(header, MessageType::LinkInfo) != nullptr || find(header, MessageType::Link) != nullptr;
}

std::vector<Link> group_links(const Source& source, const std::vector<Message>& header, uint64_t limit) {
  std::vector<Link> links;
  if (const Message* table = find(header, MessageType::SymbolTable)) {
    Cursor body = table->body;
    const uint64_t tree = body.offset(), heap = body.offset();
    SymbolTables tables{source, LocalHeap(source, heap), limit};
    tables.visit(tree, 256);
    links = std::move(tables.links);
  }
  for (const Message& message : header) {
    if (message.type == MessageType::Link) links.push_back(read_link(message.body));
  }
  const Dense dense = read_dense(header, MessageType::LinkInfo, 8);
  if (dense.heap != kNowhere && dense.index != kNowhere) {
    const FractalHeap heap(source, dense.heap);
    each_record(source, dense.index, limit, [&](Cursor& record) {
      record.skip(4);  // hash of the name
      links.push_back(read_link(heap.object(record.take(record.left()))));
    });
  }
  std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return a.name < b.name; });
  return links;
}

std::optional<Attribute> find_attribute(const Source& source, const std::vector<Message>& header,
                                        std::string_view name) {
  for (const Message& message : header) {
    if (message.type != MessageType::Attribute || message.shared) continue;
    Attribute attribute = read_attribute(message.body);
    if (attribute.name == name) return attribute;
  }
  std::optional<Attribute> found;
  const Dense dense = read_dense(header, MessageType::AttributeInfo, 2);
  if (dense.heap != kNowhere && dense.index != kNowhere) {
    const FractalHeap heap(source, dense.heap);
    each_record(source, dense.index, kMaxAttributes, [&](Cursor& record) {
      Attribute attribute = read_attribute(heap.object(record.take(8)));
      if (attribute.name == name) found = std::move(attribute);
    });
  }
  return found;
}

}  // namespace pwdice::hdf5
