// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

inline constexpr int64_t kReduceChunk = 8192;  // values per partial result
inline constexpr int64_t kReduceRows = 512;    // rows per partial result of the column sums

// Sums run in fixed chunks, each in float over SIMD lanes, and the chunks are merged in order in double, so the
// result is the same bits for any thread count. An empty sum is 0, an empty maximum -infinity.
struct Reduce {
  Vec<const float> x;
  Vec<float> result;  // out (1)
};
void reduce_sum(Context& ctx, const Reduce& op);
void reduce_mean(Context& ctx, const Reduce& op);  // x must not be empty
void reduce_max(Context& ctx, const Reduce& op);   // NaN if any x is NaN
void reduce_logsumexp(Context& ctx, const Reduce& op);
void reduce_norm(Context& ctx, const Reduce& op);  // sqrt(sum x^2)

struct Dot {
  Vec<const float> a, b;
  Vec<float> result;  // out (1)
};
void dot(Context& ctx, const Dot& op);

struct RowSum {  // y_i = sum_j x_ij
  Mat<const float> x;
  Vec<float> y;  // out (rows)
};
void row_sum(Context& ctx, const RowSum& op);

struct ColumnSum {  // y_j = sum_i x_ij
  Mat<const float> x;
  Vec<float> y;  // out (cols)
};
void column_sum(Context& ctx, const ColumnSum& op);

// flag = 1 when every x is finite, else 0. Optimisers take the flag: see adam.h.
struct AllFinite {
  Vec<const float> x;
  Vec<float> flag;  // out (1)
};
void all_finite(Context& ctx, const AllFinite& op);

// Mean and deviation of each column (unbiased, N - 1, when `unbiased`), accumulated in double.
struct ColumnMoments {
  Mat<const float> x;
  bool unbiased;
  Vec<float> mean, deviation;  // out (cols)
};
void column_moments(Context& ctx, const ColumnMoments& op);

size_t reduce_scratch_bytes(int64_t n);               // enough for each reduction to one number
size_t column_reduce_scratch_bytes(int64_t rows, int64_t cols);

}  // namespace pwdice
