// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Seconds to read one float array of an HDF5 file: read_bench FILE ARRAY [repetitions]. One number per line,
// so that read_bench.py can put it beside h5py on the same file.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "../datasets/hdf5_file.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: read_bench FILE ARRAY [repetitions]\n");
    return 2;
  }
  try {
    const int repetitions = argc > 3 ? std::atoi(argv[3]) : 1;
    for (int k = 0; k < repetitions; ++k) {
      const auto start = std::chrono::steady_clock::now();
      const pwdice::Hdf5Reader file{std::filesystem::path(argv[1])};
      const std::vector<float> values = file.read<float>(argv[2]);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      std::printf("%.6f %zu\n", seconds.count(), values.size());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "read_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
