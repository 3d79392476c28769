// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Transport over pairs taken row by row, the reference implementation's estimate:
//   y_i = (a_i + b_i - c_i)/eps      L by conjugate.cuh      d_a_i = d_b_i = its slope
// Work     one warp per pair for the cost, then O(n).
// Numerics the direct form of the distance; Kl is a logsumexp with a running maximum (lse.h) and p relative to it, chi2
//          sums chunks of 8192 in float and the chunks in double.
// Cost     7 n d flop, and for Kl about 3 n exp; loads 2 n d + n floats for the costs, then a, b and c twice: 6 n;
//          stores 3 n, of which n (the costs) are scratch.
#include "conjugate.cuh"
#include "pairwise_cost.cuh"

namespace pwdice::cuda {
namespace {

struct PairedResidual {
  Vec<const float> a, b;
  const float* c;
  float eps;
  __device__ float operator()(int64_t i) const { return (a[i] + b[i] - c[i]) / eps; }
};

__global__ void __launch_bounds__(Each::kThreads)
    transport_paired_kernel(PairedResidual y, Divergence divergence, const Lse* total, Vec<float> d_a,
                            Vec<float> d_b) {
  const float inv_n = 1.f / static_cast<float>(d_a.size);
  for_each_item(d_a.size, [&](int64_t i) { d_a[i] = d_b[i] = slope(divergence, y(i), total, inv_n); });
}

}  // namespace

void transport_paired(Context& ctx, const TransportPaired& op) {
  const Launch on(ctx, "transport_paired");
  const ScratchScope scope(ctx.scratch());
  const int64_t n = op.a.size;
  float* c = on.scratch<float>(n);
  Lse* total = on.scratch<Lse>(1);
  launch_paired_costs(on, op.cost, c);
  const PairedResidual y{op.a, op.b, c, op.eps};
  fold_conjugate(on, op.divergence, n, y, op.eps, total, nullptr, op.loss);
  transport_paired_kernel<<<on.grid(n), Each::kThreads, 0, on.stream()>>>(y, op.divergence, total, op.d_a,
                                                                          op.d_b);
  on.check();
}

}  // namespace pwdice::cuda
