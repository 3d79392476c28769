// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The transport term of the dual over all pairs; the n x m matrix is never stored.
//   y_ij = (a_i + R_i + b_j - beta dist_ij)/eps
//   joint      L = eps (log sum_ij q_j exp y_ij - log n)   d_a_i = sum_j p_ij    d_b_j = sum_i p_ij
//   semidual   lse_j = log sum_i exp((a_i - c_ij)/eps) - log n      L = eps sum_j q_j lse_j
//              d_a_i = sum_j q_j exp((a_i - c_ij)/eps - log n - lse_j)
//   chi2       L = eps/n sum_ij q_j f*(y_ij)
//              d_a_i = 1/n sum_j q_j f*'(y_ij)             d_b_j = q_j/n sum_i f*'(y_ij)
// Work     all of them are row sums and column sums, so one kernel serves: a block owns 128 rows (or columns)
//          and streams the other side (cost_tile.cuh); swapping the sides turns row sums into column sums.
//          Every sum has one owner per split and the splits are merged in order: no atomics, the same bits
//          every run.
// Numerics partial logsumexps (lse.h) throughout, and probabilities as exp(m_i - m) z_i / z of partial sums,
//          so they sum to 1 to rounding however large y is. q_j = 0 is log q_j = -inf: the column vanishes.
// Cost     two sweeps of n m (d terms + 1 exp); each loads (n / 128) m d + splits n d floats.
#include "../transport.h"
#include "pairwise_cost.cuh"
#include "reduce.cuh"

namespace pwdice::cuda {
namespace {

// Sums of f*' and f* over pairs.
struct Chi2Sums {
  float slope = 0.f, value = 0.f;
};
struct Chi2Fold {
  using Part = Chi2Sums;
  __device__ static Part join(Part a, Part b) { return {a.slope + b.slope, a.value + b.value}; }
};
__device__ __forceinline__ Chi2Sums shuffle_xor(Chi2Sums v, int mask) {
  return {__shfl_xor_sync(0xffffffffu, v.slope, mask), __shfl_xor_sync(0xffffffffu, v.value, mask)};
}

// What is done with a thread's values of a tile. `weight` is the streamed point's; outside it is the neutral
// element, so that what lies past the end of the matrix adds nothing.
struct LseConsumer {
  using Fold = LseFold;
  static constexpr float kNone = 0.f, kOutside = -INFINITY;  // weights are logarithms

  __device__ void add(Lse& part, const float (&value)[4], const float (&weight)[4]) const {
    float t[4], largest = part.m;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      t[j] = weight[j] == -INFINITY ? -INFINITY : value[j] + weight[j];  // dropped, also where the value is NaN
      largest = fmaxf(largest, t[j]);
    }
    const float shift = largest == -INFINITY ? 0.f : largest;
    float z = part.z * expf(part.m - shift);
#pragma unroll
    for (int j = 0; j < 4; ++j) z += expf(t[j] - shift);
    part = {largest, z};
  }
};

struct Chi2Consumer {
  using Fold = Chi2Fold;
  static constexpr float kNone = 1.f, kOutside = 0.f;
  bool exact;

  // A weight of 0 drops the pair, also where t overflows: points past the end are the origin, perhaps far.
  __device__ void add(Chi2Sums& part, const float (&value)[4], const float (&weight)[4]) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float t = weight[j] == 0.f || (exact && value[j] < -1.f) ? 0.f : value[j] + 1.f;
      part.slope = fmaf(weight[j], t, part.slope);
      part.value = fmaf(weight[j], 0.5f * t * t - (exact ? 0.5f : 0.f), part.value);
    }
  }
};

template <class Consumer>
__global__ void __launch_bounds__(CostTile::kThreads)
    pair_sweep_kernel(PairSweep sweep, int64_t tiles, Consumer consumer,
                      typename Consumer::Fold::Part* parts) {
  using Part = typename Consumer::Fold::Part;
  __shared__ __align__(16) float memory[CostTile::kSharedBytes / sizeof(float)];
  const Fp32Lane at;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * CostTile::kRows;
  const int64_t per_split = (tiles + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * per_split;
  const PairSide& streamed = sweep.streamed;
  Part part[4];
  sweep_tiles(sweep, first_row, min(begin, tiles), min(begin + per_split, tiles), memory,
              [&](int64_t first_column, const float(&value)[4][4]) {
                float weight[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                  const int64_t col = first_column + at.col(j);
                  weight[j] = col >= streamed.points.rows  ? Consumer::kOutside
                              : streamed.weight == nullptr ? Consumer::kNone
                                                           : streamed.weight[col];
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) consumer.add(part[i], value[i], weight);
              });
  __syncthreads();  // the merge reuses the tiles' memory
  merge_rows<typename Consumer::Fold, CostTile::kRows>(at, part, reinterpret_cast<Part*>(memory));
  if (at.warp % Fp32Lane::kColWarps != 0 || at.lane >= 8) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t row = first_row + at.row(i);
    if (row < sweep.owner.points.rows) parts[blockIdx.y * sweep.owner.points.rows + row] = part[i];
  }
}

template <class Fold>
__device__ typename Fold::Part merge_splits(const typename Fold::Part* parts, int splits, int64_t rows,
                                            int64_t i) {
  typename Fold::Part total = parts[i];
  for (int s = 1; s < splits; ++s) total = Fold::join(total, parts[s * rows + i]);
  return total;
}

// Offsets of the two sides, and the logarithms of the weights.
__global__ void __launch_bounds__(Each::kThreads)
    row_offset_kernel(Vec<const float> a, Vec<const float> reward, float* offset) {
  for_each_item(a.size, [&](int64_t i) { offset[i] = a[i] + reward[i]; });
}
__global__ void __launch_bounds__(Each::kThreads)
    log_weight_kernel(Vec<const float> q, const float* col_lse, float log_n, float* log_weight) {
  for_each_item(q.size, [&](int64_t j) {
    const float weight = q[j] == 0.f ? -INFINITY : logf(q[j]);
    log_weight[j] = col_lse == nullptr || q[j] == 0.f ? weight : weight - col_lse[j] - log_n;
  });
}

// Merged rows, and their total with the loss.
struct LoadRow {
  const Lse* parts;
  int splits;
  int64_t rows;
  Lse* merged;
  __device__ Lse operator()(int64_t i) const {
    return merged[i] = merge_splits<LseFold>(parts, splits, rows, i);
  }
};
struct StoreJoint {
  float eps, log_n;
  Lse* total;
  Vec<float> loss;
  __device__ void operator()(Lse sum) const {
    *total = sum;
    loss[0] = eps * (value(sum) - log_n);
  }
};

__device__ float share(Lse part, Lse total) {
  return part.m == -INFINITY ? part.z : expf(part.m - total.m) * part.z / total.z;  // z is 0, or NaN
}
__global__ void __launch_bounds__(Each::kThreads)
    row_share_kernel(const Lse* merged, const Lse* total, Vec<float> d_a) {
  for_each_item(d_a.size, [&](int64_t i) { d_a[i] = share(merged[i], *total); });
}
__global__ void __launch_bounds__(Each::kThreads)
    column_share_kernel(const Lse* parts, int splits, const float* log_weight, const Lse* total,
                        Vec<float> d_b) {
  for_each_item(d_b.size, [&](int64_t j) {
    Lse sum = merge_splits<LseFold>(parts, splits, d_b.size, j);
    sum.m += log_weight[j];
    d_b[j] = log_weight[j] == -INFINITY ? 0.f : share(sum, *total);
  });
}

__global__ void __launch_bounds__(Each::kThreads)
    column_lse_kernel(const Lse* parts, int splits, float log_n, Vec<float> col_lse) {
  for_each_item(col_lse.size, [&](int64_t j) {
    col_lse[j] = value(merge_splits<LseFold>(parts, splits, col_lse.size, j)) - log_n;
  });
}
__global__ void __launch_bounds__(Each::kThreads)
    semidual_row_kernel(const Lse* parts, int splits, Vec<float> d_a) {
  for_each_item(d_a.size, [&](int64_t i) {
    const Lse sum = merge_splits<LseFold>(parts, splits, d_a.size, i);
    d_a[i] = sum.m == -INFINITY ? sum.z : expf(sum.m) * sum.z;
  });
}

struct LoadWeightedLse {  // q_j = 0 drops the column, whatever its lse is
  Vec<const float> q, col_lse;
  __device__ float operator()(int64_t j) const { return q[j] == 0.f ? 0.f : q[j] * col_lse[j]; }
};
struct StoreScaled {
  double scale;
  Vec<float> loss;
  __device__ void operator()(double sum) const { loss[0] = static_cast<float>(scale * sum); }
};

struct LoadChi2Row {
  const Chi2Sums* parts;
  int splits;
  float inv_n;
  Vec<float> d_a;
  __device__ float operator()(int64_t i) const {
    const Chi2Sums sum = merge_splits<Chi2Fold>(parts, splits, d_a.size, i);
    d_a[i] = sum.slope * inv_n;
    return sum.value;
  }
};
__global__ void __launch_bounds__(Each::kThreads)
    chi2_column_kernel(const Chi2Sums* parts, int splits, Vec<const float> q, float inv_n, Vec<float> d_b) {
  for_each_item(d_b.size, [&](int64_t j) {
    d_b[j] = q[j] == 0.f ? 0.f : q[j] * inv_n * merge_splits<Chi2Fold>(parts, splits, d_b.size, j).slope;
  });
}

// The two sides of an op and the launches over them.
class Pairs {
 public:
  Pairs(const Launch& on, const PairCost& cost, Vec<const float> a, const float* b, float eps)
      : on_(on), cost_(cost), lengths_(on, cost), n_(cost.x.rows), m_(cost.y.rows) {
    float* offset = on.scratch<float>(n_);
    row_offset_kernel<<<on.grid(n_), Each::kThreads, 0, on.stream()>>>(a, cost.reward, offset);
    on.check();
    rows_ = {cost.x, offset, lengths_.x, nullptr};
    columns_ = {cost.y, b, lengths_.y, nullptr};
    inv_eps_ = 1.f / eps;
    log_n_ = std::log(static_cast<float>(n_));
    row_parts_ = on.scratch<Lse>(PairGrid::splits(n_, m_) * n_);
    column_parts_ = on.scratch<Lse>(PairGrid::splits(m_, n_) * m_);
    log_weight_ = on.scratch<float>(m_);
    merged_ = on.scratch<Lse>(n_);
    total_ = on.scratch<Lse>(1);
  }

  static size_t bytes(int64_t n, int64_t m) {
    const auto of = [](int64_t count, size_t size) {
      return Scratch::rounded(static_cast<size_t>(count) * size);
    };
    return PairLengths::bytes(n, m) + of(n, sizeof(float)) + of(PairGrid::most_parts(n, m), sizeof(Lse)) +
           of(PairGrid::most_parts(m, n), sizeof(Lse)) + of(m, sizeof(float)) + of(n, sizeof(Lse)) +
           of(1, sizeof(Lse)) + of(chunk_count(std::max(n, m)), sizeof(Lse));
  }

  // Sums over the columns of each row, in row_parts(); `weight` is the columns'. Returns the splits.
  template <class Consumer = LseConsumer>
  int sweep_rows(const float* weight, Consumer consumer = {}) {
    columns_.weight = weight;
    return sweep(rows_, columns_, consumer, row_parts_);
  }
  template <class Consumer = LseConsumer>
  int sweep_columns(Consumer consumer = {}) {
    rows_.weight = nullptr;
    return sweep(columns_, rows_, consumer, column_parts_);
  }

  // log q_j, or log q_j - lse_j - log n
  const float* log_weights(Vec<const float> q, const float* col_lse) {
    log_weight_kernel<<<on_.grid(m_), Each::kThreads, 0, on_.stream()>>>(q, col_lse, log_n_, log_weight_);
    on_.check();
    return log_weight_;
  }

  template <class Part = Lse>
  Part* row_parts() const {
    return reinterpret_cast<Part*>(row_parts_);
  }
  template <class Part = Lse>
  Part* column_parts() const {
    return reinterpret_cast<Part*>(column_parts_);
  }
  Lse* merged() const { return merged_; }
  Lse* total() const { return total_; }
  int64_t n() const { return n_; }
  int64_t m() const { return m_; }
  float log_n() const { return log_n_; }

 private:
  template <class Consumer>
  int sweep(const PairSide& owner, const PairSide& streamed, Consumer consumer, Lse* parts) {
    static_assert(sizeof(typename Consumer::Fold::Part) == sizeof(Lse));
    const PairGrid grid(on_, owner.points.rows, streamed.points.rows);
    const PairSweep sweep{owner, streamed, cost_.distance, cost_.beta, inv_eps_};
    pair_sweep_kernel<<<grid.blocks, CostTile::kThreads, 0, on_.stream()>>>(
        sweep, grid.tiles, consumer, reinterpret_cast<typename Consumer::Fold::Part*>(parts));
    on_.check();
    return static_cast<int>(grid.blocks.y);
  }

  const Launch& on_;
  const PairCost& cost_;
  PairLengths lengths_;
  int64_t n_, m_;
  PairSide rows_, columns_;
  float inv_eps_, log_n_;
  Lse *row_parts_, *column_parts_, *merged_, *total_;
  float* log_weight_;
};

void launch_column_lse(const Launch& on, Pairs& pairs, Vec<float> col_lse) {
  const int splits = pairs.sweep_columns();
  column_lse_kernel<<<on.grid(pairs.m()), Each::kThreads, 0, on.stream()>>>(pairs.column_parts(), splits,
                                                                            pairs.log_n(), col_lse);
  on.check();
}

}  // namespace

size_t transport_scratch_bytes(int64_t n, int64_t m, int64_t) { return Pairs::bytes(n, m); }

void transport_joint(Context& ctx, const TransportJoint& op) {
  const Launch on(ctx, "transport_joint");
  const ScratchScope scope(ctx.scratch());
  Pairs pairs(on, op.cost, op.a, op.b.data, op.eps);
  const float* log_weight = pairs.log_weights(op.q, nullptr);
  const int row_splits = pairs.sweep_rows(log_weight);
  fold<LseFold>(on, pairs.n(), LoadRow{pairs.row_parts(), row_splits, pairs.n(), pairs.merged()},
                StoreJoint{op.eps, pairs.log_n(), pairs.total(), op.loss});
  const int column_splits = pairs.sweep_columns();
  row_share_kernel<<<on.grid(pairs.n()), Each::kThreads, 0, on.stream()>>>(pairs.merged(), pairs.total(),
                                                                           op.d_a);
  on.check();
  column_share_kernel<<<on.grid(pairs.m()), Each::kThreads, 0, on.stream()>>>(
      pairs.column_parts(), column_splits, log_weight, pairs.total(), op.d_b);
  on.check();
}

void transport_semidual(Context& ctx, const TransportSemidual& op) {
  const Launch on(ctx, "transport_semidual");
  const ScratchScope scope(ctx.scratch());
  Pairs pairs(on, op.cost, op.a, nullptr, op.eps);
  launch_column_lse(on, pairs, op.col_lse);
  fold<SumFold>(on, pairs.m(), LoadWeightedLse{op.q, op.col_lse}, StoreScaled{op.eps, op.loss});
  const int splits = pairs.sweep_rows(pairs.log_weights(op.q, op.col_lse.data));
  semidual_row_kernel<<<on.grid(pairs.n()), Each::kThreads, 0, on.stream()>>>(pairs.row_parts(), splits,
                                                                              op.d_a);
  on.check();
}

void transport_chi2(Context& ctx, const TransportChi2& op) {
  const Launch on(ctx, "transport_chi2");
  const ScratchScope scope(ctx.scratch());
  Pairs pairs(on, op.cost, op.a, op.b.data, op.eps);
  const Chi2Consumer consumer{op.divergence == Divergence::Chi2Exact};
  const float inv_n = 1.f / static_cast<float>(pairs.n());
  const int row_splits = pairs.sweep_rows(op.q.data, consumer);
  fold<SumFold>(on, pairs.n(), LoadChi2Row{pairs.row_parts<Chi2Sums>(), row_splits, inv_n, op.d_a},
                StoreScaled{static_cast<double>(op.eps) / static_cast<double>(pairs.n()), op.loss});
  const int column_splits = pairs.sweep_columns(consumer);
  chi2_column_kernel<<<on.grid(pairs.m()), Each::kThreads, 0, on.stream()>>>(
      pairs.column_parts<Chi2Sums>(), column_splits, op.q, inv_n, op.d_b);
  on.check();
}

void column_lse(Context& ctx, const ColumnLse& op) {
  const Launch on(ctx, "column_lse");
  const ScratchScope scope(ctx.scratch());
  Pairs pairs(on, op.cost, op.a, nullptr, op.eps);
  launch_column_lse(on, pairs, op.col_lse);
}

}  // namespace pwdice::cuda
