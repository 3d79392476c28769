// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

// z_i = v_i / |v_i|, with no epsilon, as the paper has it. A row of zero norm (or of one whose inverse is no
// float, below 3e-39) gives z_i = 0 and no gradient.
struct RowNormForward {
  Mat<const float> v;   // (n, d)
  Mat<float> z;         // out (n, d); may be v
  Vec<float> inv_norm;  // out (n), saved for backward; 0 for a zero row
};
void row_norm_forward(Context& ctx, const RowNormForward& op);

// d_v = (d_z - z <z, d_z>) / |v|
struct RowNormBackward {
  Mat<const float> z, d_z;    // (n, d)
  Vec<const float> inv_norm;  // (n)
  Mat<float> d_v;             // out (n, d); may be d_z
};
void row_norm_backward(Context& ctx, const RowNormBackward& op);

}  // namespace pwdice
