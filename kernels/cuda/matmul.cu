// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// c = op(a) op(b), by the products of gemm.h.
#include "gemm.h"

namespace pwdice::cuda {

void matmul(Context& ctx, const Matmul& op) {
  const Launch on(ctx, "matmul");
  const ScratchScope scope(ctx.scratch());
  const int64_t k = op.transpose_a ? op.a.rows : op.a.cols;
  gemm(on, {op.transpose_a, op.transpose_b, op.c.rows, op.c.cols, k, op.a.data, op.a.stride, op.b.data,
            op.b.stride, op.c.data, op.c.stride});
}

size_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k) { return gemm_scratch_bytes(m, n, k); }

}  // namespace pwdice::cuda
