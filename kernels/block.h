// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

// A block of a matrix, rows apart by a stride of their own: one column of a network's head into a vector, and
// its gradient back into place. from and to must not overlap.
struct CopyBlock {  // to = from
  Mat<const float> from;
  Mat<float> to;  // out, the shape of from
};
void copy_block(Context& ctx, const CopyBlock& op);

struct AddBlock {  // to += from
  Mat<const float> from;
  Mat<float> to;  // in and out, the shape of from
};
void add_block(Context& ctx, const AddBlock& op);

}  // namespace pwdice
