// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

// to_i = from_{index_i}. An index out of range throws on the CPU and traps on a GPU in checked builds only.
struct GatherRows {
  Mat<const float> from;     // (N, d)
  Vec<const int32_t> index;  // (n)
  Mat<float> to;             // out (n, d)
};
void gather_rows(Context& ctx, const GatherRows& op);

struct GatherValues {
  Vec<const float> from;     // (N)
  Vec<const int32_t> index;  // (n)
  Vec<float> to;             // out (n)
};
void gather_values(Context& ctx, const GatherValues& op);

// The reverse, for a gradient: to_j = sum of from_i over the i with index_i = j, in order of i; 0 where there is none.
struct ScatterValues {
  Vec<const float> from;     // (n)
  Vec<const int32_t> index;  // (n)
  Vec<float> to;             // out (N)
};
void scatter_values(Context& ctx, const ScatterValues& op);

struct GatherIndices {         // an index into an index: the row of s' of a drawn transition
  Vec<const int32_t> from;     // (N)
  Vec<const int32_t> index;    // (n)
  Vec<int32_t> to;             // out (n); may be index
};
void gather_indices(Context& ctx, const GatherIndices& op);

}  // namespace pwdice
