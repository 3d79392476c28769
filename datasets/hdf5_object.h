// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

// Objects of an HDF5 file: what their headers say, for hdf5_*.cpp alone. Versions 0 to 3 of the superblock, 1
// and 2 of the object header and every version of the messages below are read; Section IV of the HDF5 File
// Format Specification has the layouts.

#include <optional>
#include <string>
#include <vector>

#include "hdf5_file.h"
#include "hdf5_source.h"

namespace pwdice::hdf5 {

enum class MessageType : uint16_t {
  Dataspace = 1,
  LinkInfo = 2,
  Datatype = 3,
  Link = 6,
  ExternalFiles = 7,
  Layout = 8,
  Filters = 11,
  Attribute = 12,
  Continuation = 16,
  SymbolTable = 17,
  AttributeInfo = 21,
};

struct Message {
  MessageType type;
  bool shared;  // kept elsewhere in the file, as for a named type
  Cursor body;
};

// Finds the HDF5 part of the file and sets how it writes addresses; returns the address of the root group.
uint64_t read_superblock(Source& source);

std::vector<Message> read_header(const Source& source, uint64_t address);

struct Link {
  std::string name;
  uint64_t address = kNowhere;  // nowhere: not a hard link, it leads out of the file or to another name
};
bool is_group(const std::vector<Message>& header);
std::vector<Link> group_links(const Source& source, const std::vector<Message>& header, uint64_t limit);

// How values are encoded: the standard IEEE and two's complement types in either byte order, enums over one
// byte, strings of fixed or variable length.
struct Encoding {
  Hdf5Type type = Hdf5Type::Float;
  uint64_t item = 0;
  bool is_signed = false, swapped = false, variable = false;
};
Encoding read_datatype(Cursor body, const std::string& where);

// Empty for a scalar; refuses null spaces and a total of more than max_values.
std::vector<int64_t> read_dataspace(Cursor body, int64_t max_values, const std::string& where);

// A value with its type: an attribute.
struct Attribute {
  std::string name;
  Cursor datatype, dataspace, data;
};
std::optional<Attribute> find_attribute(const Source& source, const std::vector<Message>& header,
                                        std::string_view name);

enum class Storage { Compact, Contiguous, Chunked };
enum class ChunkIndex { Tree = 0, Single = 1, Implicit = 2, FixedArray = 3 };
enum class Filter : uint16_t { Deflate = 1, Shuffle = 2 };

// Where the values of an array are.
struct Layout {
  Storage storage = Storage::Contiguous;
  std::vector<std::byte> compact;
  uint64_t address = kNowhere, bytes = 0;  // contiguous; address of the index when chunked
  ChunkIndex index = ChunkIndex::Tree;
  std::vector<int64_t> chunk;  // shape
  uint64_t single_bytes = 0;   // of the only chunk, when filtered
  uint32_t single_skipped = 0;
  std::vector<Filter> filters;  // in the order they were applied
};
Layout read_layout(const std::vector<Message>& header, const std::string& where);

// The message of that type; throws BadFile when it is missing or shared.
const Message& require(const std::vector<Message>& header, MessageType type, const std::string& where);

}  // namespace pwdice::hdf5
