// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "hdf5_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "../kernels/error.h"
#include "hdf5_chunks.h"
#include "hdf5_encoding.h"
#include "hdf5_handle.h"

namespace pwdice {

using hdf5::ArrayLayout;
using hdf5::ArrayShape;
using hdf5::Encoding;
using hdf5::Handle;
using hdf5::Session;

namespace {

constexpr int kMaxRank = 8;

// A scalar string of fixed or variable length, read by `read` into memory of the given type.
template <class Read>
std::string read_text(hid_t type, hid_t space, int64_t max_bytes, const std::string& where, Read&& read) {
  const auto damaged = [&] { fail(ErrorCode::BadFile, "{} cannot be read: the string is damaged", where); };
  if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1) {
    fail(ErrorCode::BadFile, "{} is not a single string", where);
  }
  const Handle memory(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_cset(memory, H5Tget_cset(type));
  std::string text;
  if (H5Tis_variable_str(type) > 0) {
    H5Tset_size(memory, H5T_VARIABLE);
    char* pointer = nullptr;
    if (read(memory, &pointer) < 0) damaged();
    if (pointer != nullptr) text.assign(pointer, strnlen(pointer, static_cast<size_t>(max_bytes)));
    H5Dvlen_reclaim(memory, space, H5P_DEFAULT, &pointer);
    return text;
  }
  const size_t size = H5Tget_size(type);
  if (size == 0 || static_cast<int64_t>(size) > std::min<int64_t>(max_bytes, int64_t{1} << 26)) {
    fail(ErrorCode::BadFile, "{} is a string of {} bytes", where, size);
  }
  text.resize(size + 1);
  H5Tset_size(memory, size + 1);
  if (read(memory, text.data()) < 0) damaged();
  text.resize(strnlen(text.data(), size));
  return text;
}

// An array whose storage and size have been checked.
struct Array {
  std::string where;
  Handle dataset, type;
  Encoding encoding;
  ArrayShape shape;
  ArrayLayout layout;
};

Array describe(Handle dataset, const Hdf5Limits& limits, const std::string& where) {
  Array out{where, std::move(dataset), {}, {}, {}, {}};
  out.layout = hdf5::check_storage(out.dataset, where);
  Handle type(H5Dget_type(out.dataset), H5Tclose);
  const Handle space(H5Dget_space(out.dataset), H5Sclose);
  if (!type || !space) fail(ErrorCode::BadFile, "{} cannot be read: its header is damaged", where);
  out.encoding = hdf5::encoding_of(type, where);
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  const int rank = H5Sget_simple_extent_ndims(space);
  if (kind == H5S_NULL) fail(ErrorCode::BadFile, "{} is empty", where);
  if (rank < 0 || rank > kMaxRank)
    fail(ErrorCode::BadFile, "{} has rank {}, the limit is {}", where, rank, kMaxRank);
  hsize_t dims[kMaxRank] = {};
  if (rank > 0) H5Sget_simple_extent_dims(space, dims, nullptr);
  out.shape.item = out.encoding.item;
  double total = static_cast<double>(std::max<int64_t>(out.encoding.item, 8));  // 8: the widest conversion
  for (int k = 0; k < rank; ++k) {
    total *= static_cast<double>(std::max<hsize_t>(dims[k], 1));
    if (total > static_cast<double>(limits.max_bytes)) {
      fail(ErrorCode::BadFile, "{} is too large: more than the limit of {} bytes", where, limits.max_bytes);
    }
    out.shape.dims.push_back(static_cast<int64_t>(dims[k]));
  }
  out.shape.bytes = out.shape.item;
  for (const int64_t d : out.shape.dims) out.shape.bytes *= d;
  out.type = std::move(type);
  return out;
}

template <class T>
void fill(const Array& array, std::span<T> values) {
  const int64_t n = array.shape.bytes / array.shape.item;
  if (std::is_floating_point_v<T> != (array.encoding.type == Hdf5Type::Float) ||
      array.encoding.type == Hdf5Type::String) {
    fail(ErrorCode::BadFile, "{} does not hold {}", array.where,
         std::is_floating_point_v<T> ? "floats" : "integers");
  }
  if (hdf5::same_encoding<T>(array.encoding)) {
    return hdf5::read_raw(array.dataset, array.type, array.shape, array.layout,
                          reinterpret_cast<std::byte*>(values.data()), array.where);
  }
  std::vector<std::byte> raw(array.shape.bytes);
  hdf5::read_raw(array.dataset, array.type, array.shape, array.layout, raw.data(), array.where);
  if (array.encoding.swapped) hdf5::swap_bytes(raw.data(), array.shape.item, n);
  if (!hdf5::convert<T>(array.encoding, raw.data(), values.data(), n)) {
    fail(ErrorCode::BadFile, "{} has a value that does not fit {} bits", array.where, sizeof(T) * 8);
  }
}

}  // namespace

int64_t Hdf5Info::count() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

struct Hdf5Reader::State {
  std::string name;
  Hdf5Limits limits;
  Handle file;
  int64_t bytes = 0;

  std::string where(std::string_view path) const { return name + ": '" + std::string(path) + "'"; }
  void open(hid_t id, std::string_view shown);
  // Whether the object is there, refusing links that leave the file on the way to it.
  bool exists(std::string_view path) const;
  Handle object(std::string_view path) const;
  Handle array(std::string_view path) const;
  Array sized_array(std::string_view path) const;  // ready to be read: fits the limits and the file
  Handle attribute(std::string_view path, std::string_view attribute, std::string& where_out) const;
};

void Hdf5Reader::State::open(hid_t id, std::string_view shown) {
  file = Handle(id, H5Fclose);
  if (!file) fail(ErrorCode::BadFile, "{} is not an HDF5 file, or it is damaged or truncated", shown);
  hsize_t size = 0;
  if (H5Fget_filesize(file, &size) < 0) fail(ErrorCode::BadFile, "{} is damaged: its size is unknown", shown);
  bytes = static_cast<int64_t>(size);
}

bool Hdf5Reader::State::exists(std::string_view path) const {
  if (path.empty()) return true;
  for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string part(path.substr(0, end));
    if (H5Lexists(file, part.c_str(), H5P_DEFAULT) <= 0) return false;
    H5L_info_t link;
    if (H5Lget_info(file, part.c_str(), &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) {
      fail(ErrorCode::BadFile, "{} is a link to another place or file", where(part));
    }
    if (end == std::string_view::npos) return true;
  }
}

Handle Hdf5Reader::State::object(std::string_view path) const {
  if (!exists(path)) fail(ErrorCode::BadFile, "{} does not exist", where(path));
  Handle out(H5Oopen(file, path.empty() ? "/" : std::string(path).c_str(), H5P_DEFAULT), H5Oclose);
  if (!out) fail(ErrorCode::BadFile, "{} cannot be opened: the file is damaged", where(path));
  return out;
}

Handle Hdf5Reader::State::array(std::string_view path) const {
  Handle out = object(path);
  if (H5Iget_type(out) != H5I_DATASET) fail(ErrorCode::BadFile, "{} is not an array", where(path));
  return out;
}

Array Hdf5Reader::State::sized_array(std::string_view path) const {
  const Session session;
  Array out = describe(array(path), limits, where(path));
  hdf5::check_size(out.dataset, out.shape, out.layout, bytes, out.where);
  return out;
}

Handle Hdf5Reader::State::attribute(std::string_view path, std::string_view attribute,
                                    std::string& where_out) const {
  where_out = name + ": attribute '" + std::string(attribute) + "' of '" + std::string(path) + "'";
  const Handle owner = object(path);
  Handle out(H5Aopen(owner, std::string(attribute).c_str(), H5P_DEFAULT), H5Aclose);
  if (!out) fail(ErrorCode::BadFile, "{} does not exist", where_out);
  return out;
}

Hdf5Reader::Hdf5Reader(const std::filesystem::path& file, const Hdf5Limits& limits)
    : state_(std::make_unique<State>()) {
  const Session session;
  state_->name = file.string(), state_->limits = limits;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) fail(ErrorCode::BadFile, "{} does not exist", state_->name);
  if (!std::filesystem::is_regular_file(status)) fail(ErrorCode::BadFile, "{} is not a file", state_->name);
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, false, true);  // a lock would fail on read-only and network disks
  state_->open(H5Fopen(state_->name.c_str(), H5F_ACC_RDONLY, access), state_->name);
}

Hdf5Reader::Hdf5Reader(std::span<const std::byte> bytes, std::string name, const Hdf5Limits& limits)
    : state_(std::make_unique<State>()) {
  const Session session;
  state_->name = std::move(name), state_->limits = limits;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access, 1 << 20, false);
  // HDF5 copies the image and does not write to it, but its signature forgets to say so.
  const bool given =
      !bytes.empty() && H5Pset_file_image(access, const_cast<std::byte*>(bytes.data()), bytes.size()) >= 0;
  state_->open(given ? H5Fopen("memory", H5F_ACC_RDONLY, access) : -1, state_->name);
}

Hdf5Reader::~Hdf5Reader() = default;
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;

const std::string& Hdf5Reader::name() const { return state_->name; }

bool Hdf5Reader::has(std::string_view path) const {
  const Session session;
  return state_->exists(path);
}

bool Hdf5Reader::is_group(std::string_view path) const {
  const Session session;
  return state_->exists(path) && H5Iget_type(state_->object(path)) == H5I_GROUP;
}

std::vector<std::string> Hdf5Reader::children(std::string_view group) const {
  const Session session;
  const Handle object = state_->object(group);
  H5G_info_t info;
  if (H5Iget_type(object) != H5I_GROUP || H5Gget_info(object, &info) < 0) {
    fail(ErrorCode::BadFile, "{} is not a group", state_->where(group));
  }
  if (static_cast<int64_t>(info.nlinks) > state_->limits.max_children) {
    fail(ErrorCode::BadFile, "{} has {} members, the limit is {}", state_->where(group), info.nlinks,
         state_->limits.max_children);
  }
  struct Names {
    std::vector<std::string> list;
    size_t limit;
  } names{{}, static_cast<size_t>(state_->limits.max_children)};
  const auto collect = [](hid_t, const char* child, const H5L_info_t*, void* data) noexcept -> herr_t {
    Names& out = *static_cast<Names*>(data);
    if (out.list.size() >= out.limit) return -1;
    out.list.emplace_back(child);
    return 0;
  };
  if (H5Literate(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, collect, &names) < 0) {
    fail(ErrorCode::BadFile, "{} cannot be listed: the file is damaged", state_->where(group));
  }
  std::sort(names.list.begin(), names.list.end());
  return std::move(names.list);
}

Hdf5Info Hdf5Reader::info(std::string_view array) const {
  const Session session;
  const Array d = describe(state_->array(array), state_->limits, state_->where(array));
  return {d.encoding.type, d.shape.dims};
}

template <class T>
void Hdf5Reader::read_into(std::string_view array, std::span<T> values) const {
  const Array source = state_->sized_array(array);
  const int64_t n = source.shape.bytes / source.shape.item;
  PWDICE_CHECK(static_cast<int64_t>(values.size()) == n, "{} has {} values, {} were asked for", source.where,
               n, values.size());
  fill(source, values);
}

template <class T>
std::vector<T> Hdf5Reader::read(std::string_view array) const {
  const Array source = state_->sized_array(array);
  std::vector<T> values(source.shape.bytes / source.shape.item);
  fill(source, std::span<T>(values));
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
  const Session session;
  const std::string where = state_->where(array);
  const Handle dataset = state_->array(array);
  hdf5::check_storage(dataset, where);
  const Handle type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  return read_text(type, space, state_->limits.max_bytes, where, [&](hid_t memory, void* to) {
    return H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, to);
  });
}

bool Hdf5Reader::has_attribute(std::string_view path, std::string_view attribute) const {
  const Session session;
  return H5Aexists(state_->object(path), std::string(attribute).c_str()) > 0;
}

std::string Hdf5Reader::string_attribute(std::string_view path, std::string_view attribute) const {
  const Session session;
  std::string where;
  const Handle id = state_->attribute(path, attribute, where);
  const Handle type(H5Aget_type(id), H5Tclose), space(H5Aget_space(id), H5Sclose);
  return read_text(type, space, state_->limits.max_bytes, where,
                   [&](hid_t memory, void* to) { return H5Aread(id, memory, to); });
}

double Hdf5Reader::real_attribute(std::string_view path, std::string_view attribute) const {
  const Session session;
  std::string where;
  const Handle id = state_->attribute(path, attribute, where);
  const Handle type(H5Aget_type(id), H5Tclose), space(H5Aget_space(id), H5Sclose);
  const Hdf5Type kind = hdf5::encoding_of(type, where).type;
  double value = 0;
  if (kind == Hdf5Type::String || kind == Hdf5Type::Bool || H5Sget_simple_extent_npoints(space) != 1 ||
      H5Aread(id, H5T_NATIVE_DOUBLE, &value) < 0) {
    fail(ErrorCode::BadFile, "{} is not a single number", where);
  }
  return value;
}

int64_t Hdf5Reader::integer_attribute(std::string_view path, std::string_view attribute) const {
  const Session session;
  std::string where;
  const Handle id = state_->attribute(path, attribute, where);
  const Handle type(H5Aget_type(id), H5Tclose), space(H5Aget_space(id), H5Sclose);
  const Hdf5Type kind = hdf5::encoding_of(type, where).type;
  int64_t value = 0;
  if ((kind != Hdf5Type::Integer && kind != Hdf5Type::Bool) || H5Sget_simple_extent_npoints(space) != 1 ||
      H5Aread(id, H5T_NATIVE_INT64, &value) < 0) {
    fail(ErrorCode::BadFile, "{} is not a single integer", where);
  }
  return value;
}

}  // namespace pwdice
