// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Rows of a large data set lie far apart, so a copy is a cache miss per row: the next rows are prefetched
// while one is copied, which keeps several misses in flight.
#include <algorithm>
#include <cstring>

#include "../backends.h"
#include "parallel.h"

namespace pwdice::cpu {
namespace {

constexpr int64_t kRows = 256, kValues = 16384;  // of a chunk at most: microseconds of work
constexpr int64_t kAhead = 12;                   // rows prefetched
constexpr int64_t kLine = 16;                    // floats per cache line

// All indices are checked before anything is written.
void check_range(const char* op, Vec<const int32_t> index, int64_t count) {
  const auto limit = static_cast<uint32_t>(std::min<int64_t>(count, int64_t{1} << 31));
  bool bad = false;
  for (int64_t i = 0; i < index.size; ++i) bad |= static_cast<uint32_t>(index[i]) >= limit;
  if (!bad) return;
  for (int64_t i = 0; i < index.size; ++i) {
    PWDICE_CHECK(index[i] >= 0 && index[i] < count, "{}: index {} is {}, expected 0 to {}", op, i, index[i],
                 count - 1);
  }
}

template <class T>
void gather(Context& ctx, Vec<const T> from, Vec<const int32_t> index, Vec<T> to) {
  ctx.pool().parallel_for(chunk_count(to.size, kRows), [&](int64_t c, int) {
    const Range r = chunk_range(to.size, kRows, c);
    for (int64_t i = r.begin; i < r.end; ++i) to[i] = from[index[i]];
  });
}

}  // namespace

void gather_rows(Context& ctx, const GatherRows& op) {
  check_range("gather_rows", op.index, op.from.rows);
  const int64_t d = op.to.cols;
  if (d == 0) return;
  const int64_t chunk = std::clamp<int64_t>(kValues / d, 1, kRows);
  ctx.pool().parallel_for(chunk_count(op.to.rows, chunk), [&](int64_t c, int) {
    const Range r = chunk_range(op.to.rows, chunk, c);
    for (int64_t i = r.begin; i < r.end; ++i) {
      if (i + kAhead < r.end) {
        const float* next = op.from.row(op.index[i + kAhead]);
        for (int64_t j = 0; j < d; j += kLine) __builtin_prefetch(next + j);
        __builtin_prefetch(next + d - 1);  // a row need not begin with a line
      }
      std::memcpy(op.to.row(i), op.from.row(op.index[i]), static_cast<size_t>(d) * sizeof(float));
    }
  });
}

void gather_values(Context& ctx, const GatherValues& op) {
  check_range("gather_values", op.index, op.from.size);
  gather(ctx, op.from, op.index, op.to);
}

// A batch is small and its indices jump: one thread, in order.
void scatter_values(Context&, const ScatterValues& op) {
  check_range("scatter_values", op.index, op.to.size);
  std::fill_n(op.to.data, op.to.size, 0.f);
  for (int64_t i = 0; i < op.index.size; ++i) op.to[op.index[i]] += op.from[i];
}

void gather_indices(Context& ctx, const GatherIndices& op) {
  check_range("gather_indices", op.index, op.from.size);
  gather(ctx, op.from, op.index, op.to);
}

}  // namespace pwdice::cpu
