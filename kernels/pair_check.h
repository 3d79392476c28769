// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "pairwise_cost.h"

namespace pwdice {

// Shapes and scale of a PairCost, for every op that takes one.
void check_cost(const char* op, const PairCost& cost);

}  // namespace pwdice
