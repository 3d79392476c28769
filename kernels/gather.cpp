// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors
#include "gather.h"

#include "backends.h"

namespace pwdice {

void gather_rows(Context& ctx, const GatherRows& op) {
  PWDICE_CHECK(op.from.cols == op.to.cols, "gather_rows: from has {} columns, to has {}", op.from.cols,
               op.to.cols);
  PWDICE_CHECK(op.index.size == op.to.rows, "gather_rows: index has {} values, to has {} rows", op.index.size,
               op.to.rows);
  ctx.on_gpu() ? cuda::gather_rows(ctx, op) : cpu::gather_rows(ctx, op);
}

void gather_values(Context& ctx, const GatherValues& op) {
  PWDICE_CHECK(op.index.size == op.to.size, "gather_values: index has {} values, to has {}", op.index.size,
               op.to.size);
  ctx.on_gpu() ? cuda::gather_values(ctx, op) : cpu::gather_values(ctx, op);
}

void scatter_values(Context& ctx, const ScatterValues& op) {
  PWDICE_CHECK(op.index.size == op.from.size, "scatter_values: index has {} values, from has {}",
               op.index.size, op.from.size);
  ctx.on_gpu() ? cuda::scatter_values(ctx, op) : cpu::scatter_values(ctx, op);
}

void gather_indices(Context& ctx, const GatherIndices& op) {
  PWDICE_CHECK(op.index.size == op.to.size, "gather_indices: index has {} values, to has {}", op.index.size,
               op.to.size);
  ctx.on_gpu() ? cuda::gather_indices(ctx, op) : cpu::gather_indices(ctx, op);
}

}  // namespace pwdice
