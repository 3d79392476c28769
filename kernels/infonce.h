// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "context.h"

namespace pwdice {

// How embeddings become scores; names and constants of the reference implementation.
enum class ScoreMetric {
  SoftplusGram,  // M = softplus(W0) softplus(W0)^T: learned_pd, the paper's
  Gram,          // M = W0 W0^T: learned_spd
  Plain,         // M = W0: learned
  Identity,      // M = 1: learned_sphere (w0 is still passed and gets a zero gradient)
};

// InfoNCE over an n x n score matrix that is never stored. z = v / |v| when normalise, else v. A row whose norm is zero has
// z = 0 and no gradient.
//   s_ij = z1_i M z2_j^T inv_tau     lse_i = log sum_j exp s_ij     L = 1/n sum_i (lse_i - s_ii)
// An input, a loss or a gradient that is not finite is NotFinite on the CPU; on a GPU loss and gradients are NaN (but not
// of a w0 of -inf, whose softplus is zero).
struct InfoNce {
  Mat<const float> v1, v2;  // (n, d), d a multiple of 8 up to 128
  Mat<const float> w0;      // (d, d); Identity reads nothing of it
  ScoreMetric metric;
  bool normalise;
  float inv_tau;            // without normalise, embeddings up to 8e28/n have room for their sums
};

struct InfoNceForward {
  InfoNce in;
  Vec<float> lse;   // out (n), saved for backward
  Vec<float> loss;  // out (1)
};
void infonce_forward(Context& ctx, const InfoNceForward& op);

// G = (softmax(s) - 1)/n: d_z1 = G z2 M^T, d_z2 = G^T z1 M, d_M = z1^T G z2 (times inv_tau), then through M(W0)
// and the normalisation. Tiles of s are recomputed, and p from lse: to |lse| 2^-24. An |lse| beyond 8192 is refused on the
// CPU; InfoNceTrain has no such limit.
struct InfoNceBackward {
  InfoNce in;
  Vec<const float> lse;     // (n)
  Vec<const float> d_loss;  // (1)
  Mat<float> d_v1, d_v2;    // out (n, d)
  Mat<float> d_w0;          // out (d, d)
};
void infonce_backward(Context& ctx, const InfoNceBackward& op);

// Forward and backward in one sweep, for training: a block of whole rows of the softmax serves both gradients
// while it is in cache. The gradients are those of L itself (d_loss = 1).
struct InfoNceTrain {
  InfoNce in;
  Vec<float> loss;        // out (1)
  Mat<float> d_v1, d_v2;  // out (n, d)
  Mat<float> d_w0;        // out (d, d)
};
void infonce_train(Context& ctx, const InfoNceTrain& op);

// Enough for each of the three, on the CPU for fewer pairs too; O(n d). At n = 65,536 the CPU takes 55 MiB for d = 32 (58
// for 8 threads and more), 95 for 64 and 177 for 128. A GPU takes 8 to 15 matrices of n x d, the fewer the larger n, d
// rounded up to 32, 64 or 128.
size_t infonce_scratch_bytes(const Context& ctx, int64_t n, int64_t d);

}  // namespace pwdice
