// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Copies and adds of blocks with row strides. Memory bound and small (heads of a few columns): the compiler's
// vector code is enough, and threads only pay above kGrain values.
#include <algorithm>
#include <cstring>

#include "../backends.h"
#include "parallel.h"

namespace pwdice::cpu {
namespace {

constexpr int64_t kGrain = 1 << 16;

template <class Row>
void for_rows(Context& ctx, int64_t rows, int64_t cols, Row&& row) {
  const int64_t rows_per_chunk = std::max<int64_t>(1, kGrain / cols);
  const int64_t chunks = chunk_count(rows, rows_per_chunk);
  ctx.pool().parallel_for(chunks, [&](int64_t chunk, int) {
    const Range range = chunk_range(rows, rows_per_chunk, chunk);
    for (int64_t i = range.begin; i < range.end; ++i) row(i);
  });
}

}  // namespace

void copy_block(Context& ctx, const CopyBlock& op) {
  const Mat<const float> from = op.from;
  const Mat<float> to = op.to;
  if (from.cols == 1) {
    for_rows(ctx, from.rows, 1, [&](int64_t i) { to(i, 0) = from(i, 0); });
  } else {
    const size_t bytes = static_cast<size_t>(from.cols) * sizeof(float);
    for_rows(ctx, from.rows, from.cols, [&](int64_t i) { std::memcpy(to.row(i), from.row(i), bytes); });
  }
}

void add_block(Context& ctx, const AddBlock& op) {
  const Mat<const float> from = op.from;
  const Mat<float> to = op.to;
  for_rows(ctx, from.rows, from.cols, [&](int64_t i) {
    const float* __restrict x = from.row(i);
    float* __restrict y = to.row(i);
    for (int64_t j = 0; j < from.cols; ++j) y[j] += x[j];
  });
}

}  // namespace pwdice::cpu
