// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "hdf5_file.h"

#include <algorithm>
#include <map>

#include "../kernels/error.h"
#include "hdf5_chunks.h"
#include "hdf5_convert.h"
#include "hdf5_heap.h"
#include "hdf5_object.h"

namespace pwdice {
namespace {

using namespace hdf5;

// An array whose header has been read and found acceptable.
struct Array {
  std::string where;
  Encoding encoding;
  ArrayShape shape;
  Layout layout;

  int64_t count() const { return shape.bytes / shape.item; }
};

Array read_array_header(const std::vector<Message>& header, const Hdf5Limits& limits,
                        const std::string& where) {
  Array out;
  out.where = where;
  out.layout = read_layout(header, where);
  out.encoding = read_datatype(require(header, MessageType::Datatype, where).body, where);
  const int64_t widest = std::max<int64_t>(static_cast<int64_t>(out.encoding.item), 8);  // 8: of a conversion
  out.shape.dims =
      read_dataspace(require(header, MessageType::Dataspace, where).body, limits.max_bytes / widest, where);
  out.shape.item = static_cast<int64_t>(out.encoding.item);
  out.shape.bytes = out.shape.item;
  for (const int64_t d : out.shape.dims) out.shape.bytes *= d;
  return out;
}

template <class T>
void fill_array(const Source& source, const Array& array, std::span<T> values) {
  if (std::is_floating_point_v<T> != (array.encoding.type == Hdf5Type::Float) ||
      array.encoding.type == Hdf5Type::String) {
    fail(ErrorCode::BadFile, "{} does not hold {}", array.where,
         std::is_floating_point_v<T> ? "floats" : "integers");
  }
  if (is_plain<T>(array.encoding)) {
    return read_raw(source, array.shape, array.layout, reinterpret_cast<std::byte*>(values.data()),
                    array.where);
  }
  std::vector<std::byte> raw(array.shape.bytes);
  read_raw(source, array.shape, array.layout, raw.data(), array.where);
  if (!convert(array.encoding, raw.data(), values.data(), array.count())) {
    fail(ErrorCode::BadFile, "{} has a value that does not fit {} bits", array.where, sizeof(T) * 8);
  }
}

// The characters of one string: in place, or a length and the place in a global heap.
std::string read_text(const Encoding& encoding, Cursor value, const std::string& where) {
  if (encoding.type != Hdf5Type::String) fail(ErrorCode::BadFile, "{} is not a single string", where);
  if (!encoding.variable) return value.text(encoding.item);
  const uint64_t length = value.u32();
  const uint64_t collection = value.offset();
  if (length == 0 || collection == kNowhere) return "";
  std::string text = global_heap_text(value.source(), collection, value.u32());
  text.resize(std::min<size_t>(text.size(), length));
  return text;
}

}  // namespace

int64_t Hdf5Info::count() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

struct Hdf5Reader::State {
  template <class... A>
  explicit State(const Hdf5Limits& l, A&&... source_of) : source(std::forward<A>(source_of)...), limits(l) {
    root = read_superblock(source);
  }

  Source source;
  Hdf5Limits limits;
  uint64_t root = 0;
  std::map<uint64_t, std::vector<Link>> groups;  // the members of every group seen so far, by its address

  std::string where(std::string_view path) const { return source.name() + ": '" + std::string(path) + "'"; }
  const std::vector<Link>* members(uint64_t group);  // nullptr: not a group
  uint64_t find(std::string_view path);              // kNowhere: nothing of that name
  std::vector<Message> header(std::string_view path);
  Array array(std::string_view path) { return read_array_header(header(path), limits, where(path)); }
  Array sized_array(std::string_view path);
  Attribute attribute(std::string_view path, std::string_view name, std::string& where_out);
};

const std::vector<Link>* Hdf5Reader::State::members(uint64_t group) {
  const auto known = groups.find(group);
  if (known != groups.end()) return &known->second;
  const std::vector<Message> messages = read_header(source, group);
  if (!hdf5::is_group(messages)) return nullptr;
  return &groups.emplace(group, group_links(source, messages, static_cast<uint64_t>(limits.max_children)))
              .first->second;
}

uint64_t Hdf5Reader::State::find(std::string_view path) {
  uint64_t at = root;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    const std::vector<Link>* links = members(at);
    if (links == nullptr) return kNowhere;
    const auto link = std::lower_bound(links->begin(), links->end(), name,
                                       [](const Link& l, std::string_view n) { return l.name < n; });
    if (link == links->end() || link->name != name) return kNowhere;
    if (link->address == kNowhere) {
      fail(ErrorCode::BadFile, "{} is a link to another place or file", where(path.substr(0, end)));
    }
    at = link->address;
    begin = end + 1;
  }
  return at;
}

std::vector<Message> Hdf5Reader::State::header(std::string_view path) {
  const uint64_t address = find(path);
  if (address == kNowhere) fail(ErrorCode::BadFile, "{} does not exist", where(path));
  return read_header(source, address);
}

Array Hdf5Reader::State::sized_array(std::string_view path) {
  Array out = array(path);
  check_size(source, out.shape, out.layout, limits.max_bytes, out.where);
  return out;
}

Attribute Hdf5Reader::State::attribute(std::string_view path, std::string_view name, std::string& where_out) {
  where_out = source.name() + ": attribute '" + std::string(name) + "' of '" + std::string(path) + "'";
  std::optional<Attribute> found = find_attribute(source, header(path), name);
  if (!found) fail(ErrorCode::BadFile, "{} does not exist", where_out);
  if (!read_dataspace(found->dataspace, 1, where_out).empty() && found->data.left() == 0) {
    fail(ErrorCode::BadFile, "{} is empty", where_out);
  }
  return std::move(*found);
}

Hdf5Reader::Hdf5Reader(const std::filesystem::path& file, const Hdf5Limits& limits)
    : state_(std::make_unique<State>(limits, file)) {}

Hdf5Reader::Hdf5Reader(std::span<const std::byte> bytes, std::string name, const Hdf5Limits& limits)
    : state_(std::make_unique<State>(limits, bytes, std::move(name))) {}

Hdf5Reader::~Hdf5Reader() = default;
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;

const std::string& Hdf5Reader::name() const { return state_->source.name(); }

bool Hdf5Reader::has(std::string_view path) const { return state_->find(path) != kNowhere; }

bool Hdf5Reader::is_group(std::string_view path) const {
  const uint64_t address = state_->find(path);
  return address != kNowhere && state_->members(address) != nullptr;
}

std::vector<std::string> Hdf5Reader::children(std::string_view group) const {
  const uint64_t address = state_->find(group);
  const std::vector<Link>* links = address == kNowhere ? nullptr : state_->members(address);
  if (links == nullptr) fail(ErrorCode::BadFile, "{} is not a group", state_->where(group));
  std::vector<std::string> names;
  for (const Link& link : *links) names.push_back(link.name);
  return names;
}

Hdf5Info Hdf5Reader::info(std::string_view array) const {
  const Array a = state_->array(array);
  return {a.encoding.type, a.shape.dims};
}

template <class T>
void Hdf5Reader::read_into(std::string_view array, std::span<T> values) const {
  const Array source = state_->sized_array(array);
  PWDICE_CHECK(static_cast<int64_t>(values.size()) == source.count(), "{} has {} values, {} were asked for",
               source.where, source.count(), values.size());
  fill_array(state_->source, source, values);
}

template <class T>
std::vector<T> Hdf5Reader::read(std::string_view array) const {
  const Array source = state_->sized_array(array);
  std::vector<T> values(source.count());
  fill_array(state_->source, source, std::span<T>(values));
  return values;
}

template void Hdf5Reader::read_into(std::string_view, std::span<float>) const;
template void Hdf5Reader::read_into(std::string_view, std::span<double>) const;
template void Hdf5Reader::read_into(std::string_view, std::span<uint8_t>) const;
template void Hdf5Reader::read_into(std::string_view, std::span<int32_t>) const;
template void Hdf5Reader::read_into(std::string_view, std::span<int64_t>) const;
template void Hdf5Reader::read_into(std::string_view, std::span<uint64_t>) const;
template std::vector<float> Hdf5Reader::read(std::string_view) const;
template std::vector<double> Hdf5Reader::read(std::string_view) const;
template std::vector<uint8_t> Hdf5Reader::read(std::string_view) const;
template std::vector<int32_t> Hdf5Reader::read(std::string_view) const;
template std::vector<int64_t> Hdf5Reader::read(std::string_view) const;
template std::vector<uint64_t> Hdf5Reader::read(std::string_view) const;

std::string Hdf5Reader::read_string(std::string_view array) const {
  const Array source = state_->sized_array(array);
  if (source.count() != 1) fail(ErrorCode::BadFile, "{} is not a single string", source.where);
  std::vector<std::byte> raw(source.shape.bytes);
  read_raw(state_->source, source.shape, source.layout, raw.data(), source.where);
  return read_text(source.encoding, Cursor(state_->source, std::move(raw), 0), source.where);
}

bool Hdf5Reader::has_attribute(std::string_view path, std::string_view attribute) const {
  return find_attribute(state_->source, state_->header(path), attribute).has_value();
}

std::string Hdf5Reader::string_attribute(std::string_view path, std::string_view attribute) const {
  std::string where;
  const Attribute found = state_->attribute(path, attribute, where);
  return read_text(read_datatype(found.datatype, where), found.data, where);
}

double Hdf5Reader::real_attribute(std::string_view path, std::string_view attribute) const {
  std::string where;
  Attribute found = state_->attribute(path, attribute, where);
  const Encoding encoding = read_datatype(found.datatype, where);
  const bool number = encoding.type == Hdf5Type::Float || encoding.type == Hdf5Type::Integer;
  if (!number) fail(ErrorCode::BadFile, "{} is not a single number", where);
  const std::span<const std::byte> stored = found.data.take(encoding.item);
  std::vector<std::byte> raw(stored.begin(), stored.end());
  double value = 0;
  convert(encoding, raw.data(), &value, 1);
  return value;
}

int64_t Hdf5Reader::integer_attribute(std::string_view path, std::string_view attribute) const {
  std::string where;
  Attribute found = state_->attribute(path, attribute, where);
  const Encoding encoding = read_datatype(found.datatype, where);
  const bool whole = encoding.type == Hdf5Type::Integer || encoding.type == Hdf5Type::Bool;
  if (!whole) fail(ErrorCode::BadFile, "{} is not a single integer", where);
  const std::span<const std::byte> stored = found.data.take(encoding.item);
  std::vector<std::byte> raw(stored.begin(), stored.end());
  int64_t value = 0;
  if (!convert(encoding, raw.data(), &value, 1)) fail(ErrorCode::BadFile, "{} does not fit 64 bits", where);
  return value;
}

}  // namespace pwdice
