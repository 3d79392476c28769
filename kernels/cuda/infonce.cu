// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// InfoNCE over an n x n score matrix that is never stored. z = v / |v| when normalise, else v.
//   s_ij = <u_i, z2_j>, u = z1 M / tau        lse_i = log sum_j exp s_ij        L = 1/n sum_i (lse_i - s_ii)
//   G = g/n (softmax(s) - 1)      h = G z2      d_z1 = h M^T / tau      d_z2 = G^T u      d_M = z1^T h / tau
// and from there through M(W0) and the normalisation:
//   SoftplusGram  S = softplus(W0), M = S S^T    d_W0 = ((d_M + d_M^T) S) * sigmoid(W0)
//   Gram          S = W0, M = S S^T              d_W0 = (d_M + d_M^T) S
//   Plain         M = W0                         d_W0 = d_M
//   Identity      M = 1                          d_W0 = 0
// Work     the n^2 part is three sweeps (infonce_sweep.cuh): lse, then G by rows and by columns. What is left
//          is O(n d^2): embeddings padded to (128-row multiples, 32 | 64 | 128), so tiles need no bounds, and
//          products with M, always in FP32.
// Numerics the sweeps leave out the diagonal: G_ii is minus the sum of the row's other p, and where s_ii is
//          the largest score, lse_i - s_ii = log1p of theirs relative to it. s_ii is stored by the sweep
//          itself, so that scores rounded alike are compared. In TF32 and BF16 the rounded embeddings also
//          stand in the diagonal term.
// Cost     forward n^2 (2 d flop + 1 exp), backward n^2 (8 d flop + 2 exp), train the sum of both; 2 n d^2 flop for u
//          and 4 n d^2 on the way back. d counts as 32, 64 or 128. A sweep loads (n / kRows + splits) n d elements; a
//          gradient's parts are splits n d floats, written and read once. Scratch (7 + splits) n d floats.
#include "gemm.h"
#include "infonce_sweep.h"
#include "math.cuh"
#include "pair_tile_mma.cuh"
#include "row_norm.cuh"

namespace pwdice::cuda {
namespace {

struct Shape {
  int64_t n, d, rows;  // rows: n padded
  int width;           // d padded
  Shape(int64_t n_, int64_t d_) : n(n_), d(d_), rows(padded_rows(n_)), width(padded_width(d_)) {}
  int64_t size() const { return rows * width; }
  int64_t metric_size() const { return int64_t{width} * width; }
  int64_t splits() const { return sweep_splits(rows / kPadRows); }
};

struct Buffers {
  float *z1, *z2, *u;               // (rows, width)
  float *narrow_u, *narrow_z2;      // the same, in TF32 or BF16
  float *inv_norm1, *inv_norm2;     // (rows)
  float *root, *metric, *d_metric;  // (width, width): S, M / tau, d_M
  float *lse, *diagonal, *others;   // (rows); others: 1 - p_ii
  float* parts;                     // (splits, rows, width), or Lse of (splits, rows)
  float *h, *d_z;                   // (rows, width)
};

// One list for both the sizes and the pointers, so that they cannot disagree. take(count) gives count floats.
template <class Take>
Buffers layout(const Shape& s, Take take) {
  Buffers b;
  for (float** matrix : {&b.z1, &b.z2, &b.u, &b.narrow_u, &b.narrow_z2, &b.h, &b.d_z})
    *matrix = take(s.size());
  for (float** vector : {&b.inv_norm1, &b.inv_norm2, &b.lse, &b.diagonal, &b.others}) *vector = take(s.rows);
  for (float** metric : {&b.root, &b.metric, &b.d_metric}) *metric = take(s.metric_size());
  b.parts = take(s.splits() * s.size());
  return b;
}

// z (rows, width): the normalised rows of v, zeros around them.
__global__ void __launch_bounds__(RowPerWarp::kThreads)
    embed_kernel(Mat<const float> v, bool normalise, int64_t rows, int width, float* z, float* inv_norm) {
  const int64_t i = RowPerWarp::row();
  if (i >= rows) return;
  const int lane = RowPerWarp::lane();
  const bool inside = i < v.rows;
  RowLength length = {1.f, 1.f};
  if (normalise && inside) length = row_length(v.row(i), v.cols, lane);
  for (int j = lane; j < width; j += 32) {
    const float x = inside && j < v.cols ? v(i, j) : 0.f;
    z[i * width + j] = normalise ? length.normalised(x) : x;
  }
  if (lane == 0) inv_norm[i] = length.inverse();
}

__global__ void __launch_bounds__(Each::kThreads)
    metric_root_kernel(Mat<const float> w0, ScoreMetric metric, int width, float* root) {
  for_each_element(width, width, [&](int64_t i, int64_t j) {
    float s = 0.f;
    if (i < w0.rows && j < w0.cols) s = metric == ScoreMetric::SoftplusGram ? softplus(w0(i, j)) : w0(i, j);
    root[i * width + j] = s;
  });
}

__global__ void __launch_bounds__(Each::kThreads)
    metric_kernel(const float* root, ScoreMetric metric, int width, int64_t d, float scale, float* result) {
  for_each_element(width, width, [&](int64_t i, int64_t j) {
    float m = 0.f;
    if (metric == ScoreMetric::Identity) {
      m = i == j && i < d ? 1.f : 0.f;
    } else if (metric == ScoreMetric::Plain) {
      m = root[i * width + j];
    } else {
      for (int k = 0; k < width; ++k) m = fmaf(root[i * width + k], root[j * width + k], m);
    }
    result[i * width + j] = scale * m;
  });
}

__global__ void __launch_bounds__(Each::kThreads)
    metric_backward_kernel(Mat<const float> w0, ScoreMetric metric, const float* root, const float* d_metric,
                           int width, Mat<float> d_w0) {
  for_each_element(w0.rows, w0.cols, [&](int64_t i, int64_t j) {
    if (metric == ScoreMetric::Identity) {
      d_w0(i, j) = 0.f;
    } else if (metric == ScoreMetric::Plain) {
      d_w0(i, j) = d_metric[i * width + j];
    } else {
      float sum = 0.f;
      for (int k = 0; k < width; ++k) {
        sum = fmaf(d_metric[i * width + k] + d_metric[k * width + i], root[k * width + j], sum);
      }
      d_w0(i, j) = metric == ScoreMetric::SoftplusGram ? sum * sigmoid(w0(i, j)) : sum;
    }
  });
}

__device__ float narrow_value(ScorePrecision precision, const void* values, int64_t i) {
  return precision == ScorePrecision::Bf16 ? __bfloat162float(static_cast<const __nv_bfloat16*>(values)[i])
                                           : static_cast<const float*>(values)[i];
}

__global__ void __launch_bounds__(Each::kThreads)
    narrow_kernel(ScorePrecision precision, int64_t size, const float* values, void* narrow) {
  for_each_item(size, [&](int64_t i) {
    if (precision == ScorePrecision::Bf16) {
      static_cast<__nv_bfloat16*>(narrow)[i] = __float2bfloat16_rn(values[i]);
    } else {
      static_cast<float*>(narrow)[i] = __uint_as_float(to_tf32(values[i]));
    }
  });
}

// Merges a row's parts in the order of the splits, stores its lse and 1 - p_ii on the way, and gives its
// loss.
struct LoadRowLoss {
  const Lse* parts;
  int splits;
  int64_t rows;
  const float* diagonal;
  float *lse, *others;
  __device__ float operator()(int64_t i) const {
    Lse rest = parts[i];
    for (int s = 1; s < splits; ++s) rest = rest + parts[s * rows + i];
    const float own = diagonal[i];
    const Lse total = rest + Lse{own, 1.f};
    lse[i] = value(total);
    others[i] = rest.m == -INFINITY ? rest.z : rest.z * expf(rest.m - total.m) / total.z;  // z is 0, or NaN
    // own - own: a score that is not finite has no finite loss
    return own >= rest.m ? log1pf(rest.z * expf(rest.m - own) + (own - own)) : lse[i] - own;
  }
};

// 1 - p_ii for a backward that is given the lse alone. Products in the order of the sweep in FP32.
__global__ void __launch_bounds__(Each::kThreads)
    others_kernel(SweepOperands in, const float* lse, float* others) {
  for_each_item(in.n, [&](int64_t i) {
    float own = 0.f;
    for (int64_t at = i * in.width; at < (i + 1) * in.width; ++at) {
      own = fmaf(narrow_value(in.precision, in.u, at), narrow_value(in.precision, in.z2, at), own);
    }
    others[i] = -expm1f(own - lse[i]);
  });
}

struct StoreMean {
  Vec<float> loss;
  int64_t n;
  __device__ void operator()(double sum) const { loss[0] = static_cast<float>(sum / static_cast<double>(n)); }
};

// result = g/n (sum of the parts - (1 - p_ii) times the diagonal's row); rows past n stay zero.
__global__ void __launch_bounds__(Each::kThreads)
    merge_gradient_kernel(const float* parts, int splits, int64_t n, int64_t rows, int width,
                          SweepOperands in, bool of_rows, const float* others, const float* d_loss,
                          float* result) {
  const float scale = (d_loss == nullptr ? 1.f : d_loss[0]) / static_cast<float>(n);
  const int64_t size = rows * width;
  for_each_item(size, [&](int64_t at) {
    float sum = parts[at];
    for (int s = 1; s < splits; ++s) sum += parts[s * size + at];
    const float own = narrow_value(in.precision, of_rows ? in.z2 : in.u, at);
    result[at] = at < n * width ? scale * (sum - others[at / width] * own) : 0.f;
  });
}

// d_v from d_z through the normalisation.
__global__ void __launch_bounds__(RowPerWarp::kThreads)
    embed_backward_kernel(const float* z, const float* d_z, const float* inv_norm, bool normalise, int width,
                          Mat<float> d_v) {
  const int64_t i = RowPerWarp::row();
  if (i >= d_v.rows) return;
  const int lane = RowPerWarp::lane();
  float along = 0.f;
  for (int j = lane; j < width; j += 32) along += z[i * width + j] * d_z[i * width + j];
  along = warp_fold<SumFold>(along);
  for (int j = lane; j < d_v.cols; j += 32) {
    const float d = d_z[i * width + j];
    d_v(i, j) = normalise ? (d - z[i * width + j] * along) * inv_norm[i] : d;
  }
}

// The launches of the three ops, in order; each step reads what the one before wrote.
class Run {
 public:
  Run(const Launch& on, const InfoNce& in) : on_(on), in_(in), shape_(in.v1.rows, in.v1.cols) {
    b_ = layout(shape_, [&](int64_t count) { return on.scratch<float>(count); });
    operands_ = {on.ctx().options().score_precision, b_.u, b_.z2, shape_.n, shape_.width};
  }

  void embed() {
    const unsigned grid = on_.grid(shape_.rows, RowPerWarp::kRows), square = on_.grid(shape_.metric_size());
    embed_kernel<<<grid, RowPerWarp::kThreads, 0, on_.stream()>>>(in_.v1, in_.normalise, shape_.rows,
                                                                  shape_.width, b_.z1, b_.inv_norm1);
    on_.check();
    embed_kernel<<<grid, RowPerWarp::kThreads, 0, on_.stream()>>>(in_.v2, in_.normalise, shape_.rows,
                                                                  shape_.width, b_.z2, b_.inv_norm2);
    on_.check();
    metric_root_kernel<<<square, Each::kThreads, 0, on_.stream()>>>(in_.w0, in_.metric, shape_.width,
                                                                    b_.root);
    on_.check();
    metric_kernel<<<square, Each::kThreads, 0, on_.stream()>>>(b_.root, in_.metric, shape_.width, shape_.d,
                                                               in_.inv_tau, b_.metric);
    on_.check();
    const int64_t w = shape_.width;
    gemm_fp32(on_, {false, false, shape_.rows, w, w, b_.z1, w, b_.metric, w, b_.u, w});
    if (operands_.precision != ScorePrecision::Fp32) narrow();
  }

  void loss(float* lse, Vec<float> result) {
    Lse* parts = reinterpret_cast<Lse*>(b_.parts);
    const int splits = sweep_lse(on_, operands_, parts, b_.diagonal);
    fold<SumFold>(on_, shape_.n, LoadRowLoss{parts, splits, shape_.rows, b_.diagonal, lse, b_.others},
                  StoreMean{result, shape_.n});
  }

  void gradients(const float* lse, const float* d_loss, Mat<float> d_v1, Mat<float> d_v2, Mat<float> d_w0) {
    const int64_t w = shape_.width;
    apply(Sweep::Columns, lse, d_loss, b_.d_z);
    embed_backward(b_.z2, b_.d_z, b_.inv_norm2, d_v2);
    apply(Sweep::Rows, lse, d_loss, b_.h);
    gemm_fp32(on_, {false, true, shape_.rows, w, w, b_.h, w, b_.metric, w, b_.d_z, w});
    embed_backward(b_.z1, b_.d_z, b_.inv_norm1, d_v1);
    gemm_fp32(on_, {true, false, w, w, shape_.rows, b_.z1, w, b_.h, w, b_.d_metric, w, in_.inv_tau});
    metric_backward_kernel<<<on_.grid(shape_.d * shape_.d), Each::kThreads, 0, on_.stream()>>>(
        in_.w0, in_.metric, b_.root, b_.d_metric, shape_.width, d_w0);
    on_.check();
  }

  // What loss() leaves behind, for a backward without it.
  void others(const float* lse) {
    others_kernel<<<on_.grid(shape_.n), Each::kThreads, 0, on_.stream()>>>(operands_, lse, b_.others);
    on_.check();
  }

  float* scratch_lse() const { return b_.lse; }

 private:
  void narrow() {
    const unsigned grid = on_.grid(shape_.size());
    narrow_kernel<<<grid, Each::kThreads, 0, on_.stream()>>>(operands_.precision, shape_.size(), b_.u,
                                                             b_.narrow_u);
    on_.check();
    narrow_kernel<<<grid, Each::kThreads, 0, on_.stream()>>>(operands_.precision, shape_.size(), b_.z2,
                                                             b_.narrow_z2);
    on_.check();
    operands_.u = b_.narrow_u, operands_.z2 = b_.narrow_z2;
  }

  void apply(Sweep direction, const float* lse, const float* d_loss, float* result) {
    const int splits = sweep_apply(on_, operands_, direction, lse, b_.parts);
    merge_gradient_kernel<<<on_.grid(shape_.size()), Each::kThreads, 0, on_.stream()>>>(
        b_.parts, splits, shape_.n, shape_.rows, shape_.width, operands_, direction == Sweep::Rows, b_.others,
        d_loss, result);
    on_.check();
  }

  void embed_backward(const float* z, const float* d_z, const float* inv_norm, Mat<float> d_v) {
    embed_backward_kernel<<<on_.grid(shape_.n, RowPerWarp::kRows), RowPerWarp::kThreads, 0, on_.stream()>>>(
        z, d_z, inv_norm, in_.normalise, shape_.width, d_v);
    on_.check();
  }

  const Launch& on_;
  const InfoNce& in_;
  Shape shape_;
  Buffers b_;
  SweepOperands operands_;
};

}  // namespace

int sweep_lse(const Launch& on, const SweepOperands& in, Lse* parts, float* diagonal) {
  switch (in.precision) {
    case ScorePrecision::Tf32:
      return Sweeps<Tf32Tile>::lse(on, in, parts, diagonal);
    case ScorePrecision::Bf16:
      return Sweeps<Bf16Tile>::lse(on, in, parts, diagonal);
    default:
      return Sweeps<Fp32Tile>::lse(on, in, parts, diagonal);
  }
}

int sweep_apply(const Launch& on, const SweepOperands& in, Sweep direction, const float* lse, float* parts) {
  switch (in.precision) {
    case ScorePrecision::Tf32:
      return Sweeps<Tf32Tile>::apply(on, in, direction, lse, parts);
    case ScorePrecision::Bf16:
      return Sweeps<Bf16Tile>::apply(on, in, direction, lse, parts);
    default:
      return Sweeps<Fp32Tile>::apply(on, in, direction, lse, parts);
  }
}

size_t infonce_scratch_bytes(int64_t n, int64_t d) {
  const Shape shape(n, d);
  size_t bytes = gemm_scratch_bytes(shape.width, shape.width, shape.rows);
  bytes += Scratch::rounded(static_cast<size_t>(chunk_count(n)) * sizeof(float));
  layout(shape, [&](int64_t count) {
    bytes += Scratch::rounded(static_cast<size_t>(count) * sizeof(float));
    return static_cast<float*>(nullptr);
  });
  return bytes;
}

void infonce_forward(Context& ctx, const InfoNceForward& op) {
  const Launch on(ctx, "infonce_forward");
  const ScratchScope scope(ctx.scratch());
  Run run(on, op.in);
  run.embed();
  run.loss(op.lse.data, op.loss);
}

void infonce_backward(Context& ctx, const InfoNceBackward& op) {
  const Launch on(ctx, "infonce_backward");
  const ScratchScope scope(ctx.scratch());
  Run run(on, op.in);
  run.embed();
  run.others(op.lse.data);
  run.gradients(op.lse.data, op.d_loss.data, op.d_v1, op.d_v2, op.d_w0);
}

void infonce_train(Context& ctx, const InfoNceTrain& op) {
  const Launch on(ctx, "infonce_train");
  const ScratchScope scope(ctx.scratch());
  Run run(on, op.in);
  run.embed();
  run.loss(run.scratch_lse(), op.loss);
  run.gradients(run.scratch_lse(), nullptr, op.d_v1, op.d_v2, op.d_w0);
}

}  // namespace pwdice::cuda
