// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Runs every kernel of the CUDA backend once at the sizes of a training and writes what ptxcpu counted.
//   gpu_model_workload counters.json
// Of a large grid only the first blocks are executed: they are all alike, and gpu_model.py scales their
// counts.
#include "workload.h"

#include <ptxcpu.h>

#include <cstdio>
#include <exception>

namespace pwdice::tools {
namespace {

constexpr uint32_t kBlocks = 2;  // executed of each grid
constexpr size_t kScratch = size_t{512} << 20;
constexpr int64_t kBatch = 1024, kLong = 3 * 8192;  // long: sums over several chunks

void count_precision(ScorePrecision precision) {
  Context ctx({.backend = Backend::Cuda, .scratch_bytes = kScratch, .score_precision = precision});
  Workload work(ctx);
  for (int64_t width : {32, 64, 128}) count_infonce(work, 4096, width);
  count_layers(work);
}

void count_exact() {
  Context ctx({.backend = Backend::Cuda, .scratch_bytes = kScratch});
  Workload work(ctx);
  count_infonce(work, 8192 + 128, 128);
  count_transport(work, kBatch, kBatch);
  count_transport(work, kLong, 64);
  count_transport(work, 64, kLong);
  for (const int64_t n : {kBatch, kLong}) count_pairs(work, n);
  count_losses(work, kBatch, 256);
  count_losses(work, kLong, 16);
  count_elementwise(work);
  count_reductions(work);
  ptxcpu_set_block_limit(0);  // each block of these waits for, or reads what, the others wrote
  count_tables(work);
}

}  // namespace
}  // namespace pwdice::tools

int main(int argc, char** argv) {
  using pwdice::ScorePrecision;
  if (argc != 2) {
    std::fprintf(stderr, "usage: gpu_model_workload counters.json\n");
    return 2;
  }
  try {
    ptxcpu_set_block_limit(pwdice::tools::kBlocks);
    for (const auto precision : {ScorePrecision::Fp32, ScorePrecision::Tf32, ScorePrecision::Bf16})
      pwdice::tools::count_precision(precision);
    pwdice::tools::count_exact();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_model_workload: %s %s\n", error.what(), ptxcpu_last_report());
    return 1;
  }
  if (ptxcpu_counters_write(argv[1]) == 0) return 0;
  std::fprintf(stderr, "gpu_model_workload: %s cannot be written\n", argv[1]);
  return 1;
}
