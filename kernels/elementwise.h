// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

// Small ops of the tape, each with a derivative made of the others, so that a gradient can be differentiated.
enum class Unary { Negate, Square, Sqrt, Reciprocal, Exp, Log, Tanh, Relu, Step /* 1[x > 0] */, Softplus, Sigmoid };
enum class Binary { Add, Subtract, Multiply, Divide };

struct UnaryMap {
  Unary f;
  Vec<const float> x;
  Vec<float> y;  // out; may be x
};
void unary_map(Context& ctx, const UnaryMap& op);

struct BinaryMap {
  Binary f;
  Vec<const float> a, b;
  Vec<float> y;  // out; may be a or b
};
void binary_map(Context& ctx, const BinaryMap& op);

struct Affine {  // y = scale x + shift
  Vec<const float> x;
  float scale, shift;
  Vec<float> y;  // out; may be x
};
void affine(Context& ctx, const Affine& op);

struct Accumulate {  // y += scale x
  Vec<const float> x;
  float scale;
  Vec<float> y;  // in and out
};
void accumulate(Context& ctx, const Accumulate& op);

struct ScaleBy {  // y = s x with s in the backend's memory
  Vec<const float> x, s;  // s: (1)
  Vec<float> y;           // out; may be x
};
void scale_by(Context& ctx, const ScaleBy& op);

// y_i = u_i a_i + (1 - u_i) b_i, one u per row: the mixed states of the gradient penalty.
struct MixRows {
  Mat<const float> a, b;  // (n, d)
  Vec<const float> u;     // (n)
  Mat<float> y;           // out (n, d)
};
void mix_rows(Context& ctx, const MixRows& op);

// y_ij = x_ij s_i (rows) or x_ij s_j (columns); y_ij = s_i or s_j.
struct ScaleRows {
  Mat<const float> x;
  Vec<const float> s;
  Mat<float> y;  // out
};
void scale_rows(Context& ctx, const ScaleRows& op);

struct BroadcastColumns {  // y_ij = s_j: a bias row for every row
  Vec<const float> s;
  Mat<float> y;  // out
};
void broadcast_columns(Context& ctx, const BroadcastColumns& op);

}  // namespace pwdice
