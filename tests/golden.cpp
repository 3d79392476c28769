// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "golden.h"

#include <hdf5.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace pwdice::test {
namespace {

namespace fs = std::filesystem;

// An HDF5 identifier with its closing function.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {
    if (id < 0) throw std::runtime_error("HDF5 could not open an object");
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

std::vector<int64_t> shape_of(hid_t space) {
  std::vector<hsize_t> dims(static_cast<size_t>(std::max(0, H5Sget_simple_extent_ndims(space))));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  return {dims.begin(), dims.end()};
}

struct Names {
  std::vector<std::string> all;
};

herr_t add_link(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<Names*>(names)->all.emplace_back(name);
  return 0;
}

herr_t add_attribute(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<Names*>(names)->all.emplace_back(name);
  return 0;
}

}  // namespace

GoldenFile::GoldenFile(const fs::path& path) : path_(path.string()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors become exceptions, not text on stderr
  try {
    const Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    Names links, attributes;
    H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_link, &links);
    H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_attribute, &attributes);
    for (const std::string& name : links.all) {
      const Handle data(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
      const Handle space(H5Dget_space(data), H5Sclose);
      Values& tensor = tensors_[name];
      tensor.shape = shape_of(space);
      tensor.values.resize(static_cast<size_t>(H5Sget_simple_extent_npoints(space)));
      if (H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.values.data()) < 0) {
        throw std::runtime_error("tensor " + name + " is not numeric");
      }
    }
    for (const std::string& name : attributes.all) {
      const Handle attribute(H5Aopen(file, name.c_str(), H5P_DEFAULT), H5Aclose);
      const Handle type(H5Aget_type(attribute), H5Tclose);
      if (H5Tget_class(type) == H5T_STRING) continue;  // "describe", for people
      const Handle space(H5Aget_space(attribute), H5Sclose);
      if (H5Sget_simple_extent_npoints(space) != 1 ||
          H5Aread(attribute, H5T_NATIVE_DOUBLE, &numbers_[name]) < 0) {
        throw std::runtime_error("attribute " + name + " is not one number");
      }
    }
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path_ + ": " + error.what());
  }
}

const GoldenFile::Values& GoldenFile::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw std::runtime_error(path_ + ": there is no tensor named " + name);
  used_.insert(name);
  return found->second;
}

std::vector<std::string> GoldenFile::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, values] : tensors_) {
    if (used_.count(name) == 0) names.push_back(name);
  }
  return names;
}

double GoldenFile::number(const std::string& attribute) const {
  const auto found = numbers_.find(attribute);
  if (found == numbers_.end()) throw std::runtime_error(path_ + ": there is no attribute named " + attribute);
  return found->second;
}

std::vector<float> GoldenFile::input(const std::string& name) const {
  std::vector<float> values;
  for (double v : want(name)) values.push_back(static_cast<float>(v));
  return values;
}

std::vector<fs::path> golden_paths() {
  std::vector<fs::path> paths;
  const auto add = [&](const fs::path& directory) {
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.path().extension() == ".h5") paths.push_back(entry.path());
    }
  };
  add(PWDICE_GOLDEN_OPS);
  const char* given = std::getenv("PWDICE_GOLDEN_DIR");
  if (given && *given) {
    if (!fs::is_directory(given))
      throw std::runtime_error(std::string("PWDICE_GOLDEN_DIR: ") + given + " is not a directory");
    const fs::path ops = fs::path(given) / "ops";
    if (fs::is_directory(ops)) {
      add(ops);
    } else if (!fs::is_directory(fs::path(given) / "tabular")) {
      throw std::runtime_error(std::string("PWDICE_GOLDEN_DIR: ") + given +
                               " has neither ops nor tabular in it");
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<GoldenFile> golden_files(const std::string& prefix, const std::string& except) {
  std::vector<GoldenFile> files;
  for (const fs::path& path : golden_paths()) {
    const std::string stem = path.stem().string();
    if (stem.compare(0, prefix.size(), prefix) != 0) continue;
    if (!except.empty() && stem.compare(prefix.size(), except.size(), except) == 0) continue;
    files.emplace_back(path);
  }
  if (files.empty()) throw std::runtime_error("there is no golden file named " + prefix + "*.h5");
  return files;
}

void expect_golden(const GoldenFile& file, const Outputs& got) {
  for (const Outputs::Item& item : got.items) {
    if (!file.has(item.name)) continue;
    SCOPED_TRACE(item.name);
    expect_within(got[item.name], file.want(item.name), file.rtol());
  }
}

void expect_all_used(const GoldenFile& file) {
  for (const std::string& name : file.unused()) {
    ADD_FAILURE() << "tensor " << name << " was neither an input nor compared";
  }
}

}  // namespace pwdice::test
