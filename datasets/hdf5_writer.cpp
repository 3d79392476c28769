// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <type_traits>

#include "../kernels/error.h"
#include "hdf5_file.h"
#include "hdf5_handle.h"

namespace pwdice {

using hdf5::Handle;
using hdf5::Session;

struct Hdf5Writer::State {
  std::string name, temporary;  // both empty for a file in memory
  Handle file, links;

  ~State() {
    file.reset();
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }
  [[noreturn]] void refuse(const char* what, std::string_view path) const {
    fail(ErrorCode::BadFile, "{}: {} '{}' cannot be written", name.empty() ? "memory" : name, what, path);
  }
  void start(hid_t id) {
    file = Handle(id, H5Fclose);
    if (!file) fail(ErrorCode::BadFile, "{} cannot be created", name.empty() ? "memory" : name);
    links = Handle(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links, 1);
  }
  Handle space(std::span<const int64_t> shape) const {
    if (shape.empty()) return {H5Screate(H5S_SCALAR), H5Sclose};
    const std::vector<hsize_t> dims(shape.begin(), shape.end());
    return {H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose};
  }
  void array(std::string_view path, hid_t stored, hid_t memory, const void* values, size_t count,
             std::span<const int64_t> shape, const Hdf5Storage& storage);
  void attribute(std::string_view path, std::string_view name, hid_t type, hid_t memory, const void* value);
};

namespace {

Handle text_type(size_t size) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, std::max<size_t>(size, 1));
  H5Tset_cset(type, H5T_CSET_UTF8);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  return type;
}

Handle bool_type() {
  Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  const int8_t no = 0, yes = 1;
  H5Tenum_insert(type, "FALSE", &no);
  H5Tenum_insert(type, "TRUE", &yes);
  return type;
}

struct TypePair {
  hid_t stored, memory;
};
template <class T>
TypePair types() {
  if constexpr (std::is_same_v<T, float>) return {H5T_IEEE_F32LE, H5T_NATIVE_FLOAT};
  if constexpr (std::is_same_v<T, double>) return {H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE};
  if constexpr (std::is_same_v<T, uint8_t>) return {H5T_STD_U8LE, H5T_NATIVE_UINT8};
  if constexpr (std::is_same_v<T, int32_t>) return {H5T_STD_I32LE, H5T_NATIVE_INT32};
  if constexpr (std::is_same_v<T, int64_t>) return {H5T_STD_I64LE, H5T_NATIVE_INT64};
  if constexpr (std::is_same_v<T, uint64_t>) return {H5T_STD_U64LE, H5T_NATIVE_UINT64};
}

// No times in object headers: equal content gives equal bytes.
Handle creation(std::span<const int64_t> shape, const Hdf5Storage& storage) {
  Handle plist(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(plist, false);
  if (storage.chunk.empty() || std::find(shape.begin(), shape.end(), 0) != shape.end()) return plist;
  std::vector<hsize_t> chunk;
  for (size_t k = 0; k < shape.size() && k < storage.chunk.size(); ++k) {
    chunk.push_back(static_cast<hsize_t>(std::clamp<int64_t>(storage.chunk[k], 1, shape[k])));
  }
  H5Pset_chunk(plist, static_cast<int>(chunk.size()), chunk.data());
  if (storage.shuffle) H5Pset_shuffle(plist);
  if (storage.gzip > 0) H5Pset_deflate(plist, static_cast<unsigned>(storage.gzip));
  return plist;
}

void sync_path(const std::string& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags);
  const bool ok = descriptor >= 0 && ::fsync(descriptor) == 0;
  if (descriptor >= 0) ::close(descriptor);
  if (!ok) fail(ErrorCode::BadFile, "{} cannot be flushed to the disk", path);
}

}  // namespace

void Hdf5Writer::State::array(std::string_view path, hid_t stored, hid_t memory, const void* values,
                              size_t count, std::span<const int64_t> shape, const Hdf5Storage& storage) {
  int64_t expected = 1;
  for (const int64_t d : shape) expected *= d;
  PWDICE_CHECK(expected == static_cast<int64_t>(count), "'{}' has {} values for a shape of {}", path, count,
               expected);
  PWDICE_CHECK(file, "'{}' is written after the file was closed", path);
  const Handle where = space(shape), plist = creation(shape, storage);
  const Handle id(H5Dcreate2(file, std::string(path).c_str(), stored, where, links, plist, H5P_DEFAULT),
                  H5Dclose);
  if (!id || (count > 0 && H5Dwrite(id, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0))
    refuse("array", path);
}

void Hdf5Writer::State::attribute(std::string_view path, std::string_view attribute_name, hid_t type,
                                  hid_t memory, const void* value) {
  PWDICE_CHECK(file, "attribute '{}' is written after the file was closed", attribute_name);
  const Handle owner(H5Oopen(file, path.empty() ? "/" : std::string(path).c_str(), H5P_DEFAULT), H5Oclose);
  const Handle scalar = space({});
  const Handle id(
      owner ? H5Acreate2(owner, std::string(attribute_name).c_str(), type, scalar, H5P_DEFAULT, H5P_DEFAULT)
            : -1,
      H5Aclose);
  if (!id || H5Awrite(id, memory, value) < 0) refuse("attribute", attribute_name);
}

Hdf5Writer::Hdf5Writer() : state_(std::make_unique<State>()) {
  const Session session;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access, 1 << 20, false);
  state_->start(H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access));
}

Hdf5Writer::Hdf5Writer(const std::filesystem::path& file) : state_(std::make_unique<State>()) {
  const Session session;
  state_->name = file.string();
  const std::string temporary = state_->name + ".partial-" + std::to_string(::getpid());
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, false, true);
  state_->start(H5Fcreate(temporary.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access));
  state_->temporary = temporary;
}

Hdf5Writer::~Hdf5Writer() = default;
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;
Hdf5Writer& Hdf5Writer::operator=(Hdf5Writer&&) noexcept = default;

void Hdf5Writer::group(std::string_view path) {
  const Session session;
  const Handle id(
      H5Gcreate2(state_->file, std::string(path).c_str(), state_->links, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  if (!id) state_->refuse("group", path);
}

template <class T>
void Hdf5Writer::write(std::string_view array, std::span<const T> values, std::span<const int64_t> shape,
                       const Hdf5Storage& storage) {
  const Session session;
  const TypePair type = types<T>();
  state_->array(array, type.stored, type.memory, values.data(), values.size(), shape, storage);
}

using Shape = std::span<const int64_t>;
template void Hdf5Writer::write(std::string_view, std::span<const float>, Shape, const Hdf5Storage&);
template void Hdf5Writer::write(std::string_view, std::span<const double>, Shape, const Hdf5Storage&);
template void Hdf5Writer::write(std::string_view, std::span<const uint8_t>, Shape, const Hdf5Storage&);
template void Hdf5Writer::write(std::string_view, std::span<const int32_t>, Shape, const Hdf5Storage&);
template void Hdf5Writer::write(std::string_view, std::span<const int64_t>, Shape, const Hdf5Storage&);
template void Hdf5Writer::write(std::string_view, std::span<const uint64_t>, Shape, const Hdf5Storage&);

void Hdf5Writer::write_bool(std::string_view array, std::span<const uint8_t> values, Shape shape,
                            const Hdf5Storage& storage) {
  const Session session;
  const Handle type = bool_type();
  state_->array(array, type, type, values.data(), values.size(), shape, storage);
}

void Hdf5Writer::write_string(std::string_view array, std::string_view text) {
  const Session session;
  const Handle type = text_type(text.size());
  const std::string value = text.empty() ? std::string(1, '\0') : std::string(text);
  state_->array(array, type, type, value.data(), 1, {}, {});
}

void Hdf5Writer::attribute(std::string_view path, std::string_view attribute, std::string_view text) {
  const Session session;
  const Handle type = text_type(text.size());
  const std::string value = text.empty() ? std::string(1, '\0') : std::string(text);
  state_->attribute(path, attribute, type, type, value.data());
}

void Hdf5Writer::attribute(std::string_view path, std::string_view attribute, const char* text) {
  this->attribute(path, attribute, std::string_view(text));
}

void Hdf5Writer::attribute(std::string_view path, std::string_view attribute, double value) {
  const Session session;
  state_->attribute(path, attribute, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

void Hdf5Writer::attribute(std::string_view path, std::string_view attribute, int64_t value) {
  const Session session;
  state_->attribute(path, attribute, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

std::vector<std::byte> Hdf5Writer::bytes() {
  const Session session;
  PWDICE_CHECK(state_->file && state_->name.empty(), "bytes: the file is closed or not in memory");
  H5Fflush(state_->file, H5F_SCOPE_GLOBAL);
  const ssize_t size = H5Fget_file_image(state_->file, nullptr, 0);
  std::vector<std::byte> out(size > 0 ? static_cast<size_t>(size) : 0);
  if (size <= 0 || H5Fget_file_image(state_->file, out.data(), out.size()) != size) {
    fail(ErrorCode::Internal, "memory: HDF5 gave no image of the file");
  }
  state_->file.reset();
  return out;
}

void Hdf5Writer::commit() {
  const Session session;
  PWDICE_CHECK(state_->file && !state_->temporary.empty(), "commit: the file is closed or in memory");
  if (state_->file.reset() < 0)
    fail(ErrorCode::BadFile, "{} cannot be written: is the disk full?", state_->name);
  sync_path(state_->temporary, O_RDONLY);
  if (std::rename(state_->temporary.c_str(), state_->name.c_str()) != 0) {
    fail(ErrorCode::BadFile, "{} cannot be put in place", state_->name);
  }
  state_->temporary.clear();
  const std::filesystem::path directory = std::filesystem::absolute(state_->name).parent_path();
  sync_path(directory.string(), O_RDONLY | O_DIRECTORY);
}

}  // namespace pwdice
