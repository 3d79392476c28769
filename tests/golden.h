// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "op_case.h"

namespace pwdice::test {

// Reference values of one op, computed in double by another implementation: an HDF5 file of named tensors and
// numbers. Every size comes from the file, so files of the same layout and other sizes serve as well.
class GoldenFile {
 public:
  explicit GoldenFile(const std::filesystem::path& path);  // throws std::runtime_error that names the file

  const std::string& path() const { return path_; }
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  double number(const std::string& attribute) const;
  double rtol() const { return number("rtol"); }  // relative to a tensor's largest value

  const std::vector<double>& want(const std::string& name) const { return tensor(name).values; }
  std::vector<float> input(const std::string& name) const;
  int64_t size(const std::string& name) const { return static_cast<int64_t>(want(name).size()); }
  int64_t rows(const std::string& name) const { return tensor(name).shape.at(0); }
  int64_t cols(const std::string& name) const { return tensor(name).shape.at(1); }
  std::vector<std::string> unused() const;

 private:
  struct Values {
    std::vector<int64_t> shape;
    std::vector<double> values;
  };
  const Values& tensor(const std::string& name) const;  // and remembers that somebody asked

  std::string path_;
  std::map<std::string, Values> tensors_;
  std::map<std::string, double> numbers_;
  mutable std::set<std::string> used_;
};

// Compares the outputs that are named like tensors of the file.
void expect_golden(const GoldenFile& file, const Outputs& got);

// Every tensor of the file was an input or was compared: a misspelt name must not pass for agreement.
void expect_all_used(const GoldenFile& file);

// All golden files: those of this directory's golden/ops, and of $PWDICE_GOLDEN_DIR/ops when that is set. A given
// directory must be there, but may hold the files of tabular/ alone.
std::vector<std::filesystem::path> golden_paths();

// Those whose name begins with `prefix` and goes on with something else than `except`. Throws when there is none: a test
// without files would pass.
std::vector<GoldenFile> golden_files(const std::string& prefix, const std::string& except = "");

}  // namespace pwdice::test
