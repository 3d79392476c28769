// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#pragma once

#include "../context.h"
#include "parallel.h"

namespace pwdice::cpu {

inline constexpr int64_t kDivergenceChunk = 8192;
inline int64_t divergence_chunks(int64_t n) { return chunk_count(n, kDivergenceChunk); }
inline size_t divergence_bytes(int64_t n) {
  return Scratch::rounded(static_cast<size_t>(divergence_chunks(n)) * sizeof(double));
}

}  // namespace pwdice::cpu
