// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Work     kReduceChunk values per chunk (whole rows for the matrix sums), one partial result per chunk in
//          scratch, merged in chunk order. A vector of one chunk never wakes a worker.
// Numerics sums: float over SIMD lanes within a chunk (at most a few hundred additions per lane), lanes and
//          chunks in double. Norm and moments: double throughout, so that squares neither overflow nor
//          vanish. Maximum: a NaN wins and stays. Logsumexp: shifted by the chunk's own maximum, chunks
//          merged in double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../backends.h"
#include "parallel.h"

// clang-format off: foreach_target.h includes this file once per target and comes before everything of Highway
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce.cpp"
#include "hwy/foreach_target.h"
#include "tail-inl.h"
#include "vector_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {
namespace {

// Lanes of an accumulator, in order, in double.
template <class D>
HWY_INLINE double lane_sum(D d, hn::Vec<D> v) {
  HWY_ALIGN hn::TFromD<D> lanes[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  hn::Store(v, d, lanes);
  double total = 0;
  for (size_t i = 0; i < hn::Lanes(d); ++i) total += static_cast<double>(lanes[i]);
  return total;
}

// sum_i f(i, v) with v = term(p + i); four accumulators hide the latency of the addition.
template <class Load>
HWY_INLINE double accumulate_terms(int64_t n, Load term) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, term(d, i, lanes));
    s1 = hn::Add(s1, term(d, i + lanes, lanes));
    s2 = hn::Add(s2, term(d, i + 2 * lanes, lanes));
    s3 = hn::Add(s3, term(d, i + 3 * lanes, lanes));
  }
  for (; i < n; i += lanes) s0 = hn::Add(s0, term(d, i, std::min(lanes, n - i)));
  return lane_sum(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

// The next `count` values, zero beyond them.
template <class D>
HWY_INLINE hn::Vec<D> load_some(D d, const float* p, int64_t count) {
  const auto n = static_cast<size_t>(count);
  return n == hn::Lanes(d) ? hn::LoadU(d, p) : load_n(d, p, n);
}

double sum_chunk(const float* x, int64_t n) {
  return accumulate_terms(
      n, [=](auto d, int64_t i, int64_t count) HWY_ATTR { return load_some(d, x + i, count); });
}

double dot_chunk(const float* a, const float* b, int64_t n) {
  return accumulate_terms(n, [=](auto d, int64_t i, int64_t count) HWY_ATTR {
    return hn::Mul(load_some(d, a + i, count), load_some(d, b + i, count));
  });
}

double square_chunk(const float* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto v0 = hn::PromoteTo(d, hn::LoadU(df, x + i)),
               v1 = hn::PromoteTo(d, hn::LoadU(df, x + i + lanes));
    s0 = hn::MulAdd(v0, v0, s0);
    s1 = hn::MulAdd(v1, v1, s1);
  }
  double total = lane_sum(d, hn::Add(s0, s1));
  for (; i < n; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return total;
}

// x86's max drops a NaN in one operand, so the choice is spelled out.
float max_chunk(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    best = hn::IfThenElse(hn::Or(hn::Gt(v, best), hn::IsNaN(v)), v, best);
  }
  HWY_ALIGN float merged[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(best, d, merged);
  float result = merged[0];
  for (int64_t k = 1; k < lanes; ++k)
    result = merged[k] > result || merged[k] != merged[k] ? merged[k] : result;
  for (; i < n; ++i) result = x[i] > result || x[i] != x[i] ? x[i] : result;
  return result;
}

double exp_sum_chunk(const float* x, float max, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto m = hn::Set(d, max);
  const int64_t whole = n / lanes * lanes;
  double total = accumulate_terms(whole, [=](auto tag, int64_t i, int64_t) HWY_ATTR {
    return exp_nonpositive(tag, hn::Sub(hn::LoadU(tag, x + i), m));
  });
  if (whole < n) {  // lanes past the end must not count
    HWY_ALIGN float last[HWY_MAX_BYTES / sizeof(float)];
    const auto rest = static_cast<size_t>(n - whole);
    hn::Store(exp_nonpositive(d, hn::Sub(load_n(d, x + whole, rest), m)), d, last);
    for (size_t k = 0; k < rest; ++k) total += static_cast<double>(last[k]);
  }
  return total;
}

bool finite_chunk(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto bad = hn::Zero(d);  // x - x is 0 for a finite x and NaN otherwise
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    bad = hn::Or(bad, hn::Sub(v, v));
  }
  if (i < n) {
    const auto v = load_n(d, x + i, static_cast<size_t>(n - i));
    bad = hn::Or(bad, hn::Sub(v, v));
  }
  return hn::AllTrue(d, hn::Eq(bad, hn::Zero(d)));
}

// total_j = sum over rows of x_ij, a strip of columns at a time.
void column_sum_chunk(const float* x, int64_t stride, int64_t rows, int64_t cols, double* total) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float sums[HWY_MAX_BYTES / sizeof(float)];
  for (int64_t j = 0; j < cols; j += lanes) {
    const int64_t count = std::min(lanes, cols - j);
    auto s = hn::Zero(d);
    for (int64_t i = 0; i < rows; ++i) s = hn::Add(s, load_some(d, x + i * stride + j, count));
    hn::Store(s, d, sums);
    for (int64_t k = 0; k < count; ++k) total[j + k] = static_cast<double>(sums[k]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace pwdice::cpu {

HWY_EXPORT(sum_chunk);
HWY_EXPORT(dot_chunk);
HWY_EXPORT(square_chunk);
HWY_EXPORT(max_chunk);
HWY_EXPORT(exp_sum_chunk);
HWY_EXPORT(finite_chunk);
HWY_EXPORT(column_sum_chunk);

namespace {

// partial(at, n) for every chunk, merge(partial) in chunk order.
template <class T, class Partial, class Merge>
void reduce(Context& ctx, const char* op, int64_t n, Partial&& partial, Merge&& merge) {
  ScratchScope scope(ctx.scratch());
  const int64_t chunks = chunk_count(n, kReduceChunk);
  T* partials = ctx.scratch().take<T>(chunks, op);
  ctx.pool().parallel_for(chunks, [&](int64_t c, int) {
    const Range r = chunk_range(n, kReduceChunk, c);
    partials[c] = partial(r.begin, r.end - r.begin);
  });
  for (int64_t c = 0; c < chunks; ++c) merge(partials[c]);
}

double total(Context& ctx, const char* op, Vec<const float> x) {
  const auto run = HWY_DYNAMIC_DISPATCH(sum_chunk);
  double result = 0;
  reduce<double>(
      ctx, op, x.size, [&](int64_t at, int64_t n) { return run(x.data + at, n); },
      [&](double part) { result += part; });
  return result;
}

}  // namespace

void reduce_sum(Context& ctx, const Reduce& op) {
  op.result[0] = static_cast<float>(total(ctx, "reduce_sum", op.x));
}

void reduce_mean(Context& ctx, const Reduce& op) {
  op.result[0] = static_cast<float>(total(ctx, "reduce_mean", op.x) / static_cast<double>(op.x.size));
}

void reduce_max(Context& ctx, const Reduce& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(max_chunk);
  float result = -std::numeric_limits<float>::infinity();
  reduce<float>(
      ctx, "reduce_max", op.x.size, [&](int64_t at, int64_t n) { return run(op.x.data + at, n); },
      [&](float part) { result = part > result || std::isnan(part) ? part : result; });
  op.result[0] = result;
}

void reduce_logsumexp(Context& ctx, const Reduce& op) {
  struct Part {  // stands for exp(m) z
    float m;
    double z;
  };
  const auto max = HWY_DYNAMIC_DISPATCH(max_chunk);
  const auto exp_sum = HWY_DYNAMIC_DISPATCH(exp_sum_chunk);
  double m = -std::numeric_limits<double>::infinity(), z = 0;
  reduce<Part>(
      ctx, "reduce_logsumexp", op.x.size,
      [&](int64_t at, int64_t n) -> Part {
        const float top = max(op.x.data + at, n);
        // An infinite maximum (or NaN) is the answer itself: inf - inf below would be NaN.
        return {top, std::isfinite(top) ? exp_sum(op.x.data + at, top, n) : 1.0};
      },
      [&](const Part& part) {
        const auto top = static_cast<double>(part.m);
        if (std::isnan(m)) return;
        if (!(top <= m)) {  // larger, or NaN
          z = std::isfinite(m) && std::isfinite(top) ? z * std::exp(m - top) + part.z : part.z;
          m = top;
        } else if (std::isfinite(top)) {
          z += part.z * std::exp(top - m);
        }
      });
  op.result[0] = static_cast<float>(std::isfinite(m) ? m + std::log(z) : m);
}

void reduce_norm(Context& ctx, const Reduce& op, const char* name) {
  const auto run = HWY_DYNAMIC_DISPATCH(square_chunk);
  double result = 0;
  reduce<double>(
      ctx, name, op.x.size, [&](int64_t at, int64_t n) { return run(op.x.data + at, n); },
      [&](double part) { result += part; });
  op.result[0] = static_cast<float>(std::sqrt(result));
}

void dot(Context& ctx, const Dot& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(dot_chunk);
  double result = 0;
  reduce<double>(
      ctx, "dot", op.a.size, [&](int64_t at, int64_t n) { return run(op.a.data + at, op.b.data + at, n); },
      [&](double part) { result += part; });
  op.result[0] = static_cast<float>(result);
}

void all_finite(Context& ctx, const AllFinite& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(finite_chunk);
  bool finite = true;
  reduce<float>(
      ctx, "all_finite", op.x.size, [&](int64_t at, int64_t n) { return run(op.x.data + at, n) ? 1.f : 0.f; },
      [&](float part) { finite = finite && part != 0.f; });
  op.flag[0] = finite ? 1.f : 0.f;
}

void row_sum(Context& ctx, const RowSum& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(sum_chunk);
  const int64_t chunk = std::max<int64_t>(1, kReduceChunk / std::max<int64_t>(1, op.x.cols));
  ctx.pool().parallel_for(chunk_count(op.x.rows, chunk), [&](int64_t c, int) {
    const Range r = chunk_range(op.x.rows, chunk, c);
    for (int64_t i = r.begin; i < r.end; ++i) op.y[i] = static_cast<float>(run(op.x.row(i), op.x.cols));
  });
}

void column_sum(Context& ctx, const ColumnSum& op) {
  const auto run = HWY_DYNAMIC_DISPATCH(column_sum_chunk);
  ScratchScope scope(ctx.scratch());
  const int64_t cols = op.x.cols, chunks = chunk_count(op.x.rows, kReduceRows);
  double* partials = ctx.scratch().take<double>(chunks * cols, "column_sum");  // (chunks, cols)
  ctx.pool().parallel_for(chunks, [&](int64_t c, int) {
    const Range r = chunk_range(op.x.rows, kReduceRows, c);
    run(op.x.row(r.begin), op.x.stride, r.end - r.begin, cols, partials + c * cols);
  });
  for (int64_t j = 0; j < cols; ++j) {
    double sum = 0;
    for (int64_t c = 0; c < chunks; ++c) sum += partials[c * cols + j];
    op.y[j] = static_cast<float>(sum);
  }
}

// Two passes, mean first: the deviation of a column far from zero keeps its digits.
void column_moments(Context& ctx, const ColumnMoments& op) {
  ScratchScope scope(ctx.scratch());
  const int64_t rows = op.x.rows, cols = op.x.cols, chunks = chunk_count(rows, kReduceRows);
  double* partials = ctx.scratch().take<double>(chunks * cols, "column_moments");  // (chunks, cols)
  double* mean = ctx.scratch().take<double>(cols, "column_moments");
  const auto column_totals = [&](auto&& term) {
    ctx.pool().parallel_for(chunks, [&](int64_t c, int) {
      const Range r = chunk_range(rows, kReduceRows, c);
      double* sums = partials + c * cols;
      std::fill_n(sums, cols, 0.0);
      for (int64_t i = r.begin; i < r.end; ++i) {
        const float* x = op.x.row(i);
        for (int64_t j = 0; j < cols; ++j) sums[j] += term(static_cast<double>(x[j]), j);
      }
    });
    for (int64_t c = 1; c < chunks; ++c) {
      for (int64_t j = 0; j < cols; ++j) partials[j] += partials[c * cols + j];
    }
  };
  column_totals([](double x, int64_t) { return x; });
  for (int64_t j = 0; j < cols; ++j) mean[j] = partials[j] / static_cast<double>(rows);
  column_totals([&](double x, int64_t j) { return (x - mean[j]) * (x - mean[j]); });
  for (int64_t j = 0; j < cols; ++j) {
    op.mean[j] = static_cast<float>(mean[j]);
    op.deviation[j] =
        static_cast<float>(std::sqrt(partials[j] / static_cast<double>(op.unbiased ? rows - 1 : rows)));
  }
}

}  // namespace pwdice::cpu

#endif  // HWY_ONCE
