// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "pairwise_cost.h"

namespace pwdice {

// Shapes and scale of a PairCost, for every op that takes one.
void check_cost(const char* op, const PairCost& cost);

// For <op>_scratch_bytes: n states, m expert states, of d columns.
void check_pair_sizes(const char* op, int64_t n, int64_t m, int64_t d);

}  // namespace pwdice
