// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "matmul.h"

#include <algorithm>

#include "backends.h"
#include "check.h"
#include "cpu/gemm.h"

namespace pwdice {

void matmul(Context& ctx, const Matmul& op) {
  const int64_t m = op.transpose_a ? op.a.cols : op.a.rows, k = op.transpose_a ? op.a.rows : op.a.cols;
  const int64_t n = op.transpose_b ? op.b.rows : op.b.cols, b_k = op.transpose_b ? op.b.cols : op.b.rows;
  PWDICE_CHECK(k == b_k, "matmul: op(a) is {} x {}, op(b) is {} x {}", m, k, b_k, n);
  check_matrix("matmul", "a", op.a, op.a.rows, op.a.cols);
  check_matrix("matmul", "b", op.b, op.b.rows, op.b.cols);
  check_matrix("matmul", "c", op.c, m, n);
  if (m == 0 || n == 0) return;
  ctx.on_gpu() ? cuda::matmul(ctx, op) : cpu::matmul(ctx, op);
}

size_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k) {
  // a b^T and a b need b in panels; a^T b works in blocks of k; a^T b^T is (b a)^T, with a in panels.
  return std::max({cpu::gemm_panels_bytes(k, n), cpu::gemm_panels_bytes(k, m),
                   cpu::gemm_columns_bytes(m, n), cuda::matmul_scratch_bytes(m, n, k)});
}

}  // namespace pwdice
