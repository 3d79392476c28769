// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// The divergence of a vector of exponents y and its derivative, which takes the place of y:
//
//   Kl         log(1/n sum exp y)             p_i = exp(y_i) / sum exp y
//   Chi2       1/n sum (y + 1)^2 / 2          p_i = (y_i + 1)/n
//   Chi2Exact  1/n sum relu(y + 1)^2/2 - 1/2  p_i = relu(y_i + 1)/n
//
// Work     chunks of kDivergenceChunk values, partial sums merged in chunk order.
// Numerics Kl relative to the maximum of the whole vector; sums float over the lanes of 512 values, double
//          beyond, so that the p of Kl sum to 1 to rounding.
// Cost     n exp. Kl passes over y three times (its maximum, exp, scale): 20 n bytes; chi2 once: 8 n.

#if defined(PWDICE_KERNELS_CPU_DIVERGENCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PWDICE_KERNELS_CPU_DIVERGENCE_INL_H_
#undef PWDICE_KERNELS_CPU_DIVERGENCE_INL_H_
#else
#define PWDICE_KERNELS_CPU_DIVERGENCE_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "../transport.h"
#include "divergence_plan.h"
#include "parallel.h"
#include "tail-inl.h"
#include "vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

using DivergenceTag = hn::ScalableTag<float>;
using DivergenceVec = hn::Vec<DivergenceTag>;

// f(i, count) for the vectors of [range), the last one possibly short.
template <class F>
HWY_INLINE void for_vectors(Range range, const F& f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DivergenceTag()));
  for (int64_t i = range.begin; i < range.end; i += lanes) f(i, std::min(lanes, range.end - i));
}

HWY_INLINE DivergenceVec load_some(const float* p, int64_t count) {
  const DivergenceTag d;
  return count == static_cast<int64_t>(hn::Lanes(d)) ? hn::LoadU(d, p)
                                                     : load_n(d, p, static_cast<size_t>(count));
}
HWY_INLINE void store_some(DivergenceVec v, float* p, int64_t count) {
  const DivergenceTag d;
  count == static_cast<int64_t>(hn::Lanes(d)) ? hn::StoreU(v, d, p)
                                              : store_n(v, d, p, static_cast<size_t>(count));
}

// The first `count` lanes of v, zero beyond them.
HWY_INLINE DivergenceVec first_lanes(DivergenceVec v, int64_t count) {
  return hn::IfThenElseZero(hn::FirstN(DivergenceTag(), static_cast<size_t>(count)), v);
}

HWY_INLINE double lanes_total(DivergenceVec v) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, DivergenceTag(), lanes);
  double sum = 0;
  for (size_t i = 0; i < hn::Lanes(DivergenceTag()); ++i) sum += static_cast<double>(lanes[i]);
  return sum;
}

// The largest of y; NaN when there is one.
inline float range_max(const float* y, Range range) {
  const DivergenceTag d;
  DivergenceVec top = hn::Set(d, -INFINITY);
  auto bad = hn::Lt(top, top);
  for_vectors(range, [&](int64_t i, int64_t count) HWY_ATTR {
    const auto real = hn::FirstN(d, static_cast<size_t>(count));
    const DivergenceVec v = hn::IfThenElse(real, load_some(y + i, count), hn::Set(d, -INFINITY));
    bad = hn::Or(bad, hn::IsNaN(v));
    top = hn::Max(top, v);
  });
  return hn::AllFalse(d, bad) ? hn::GetLane(hn::MaxOfLanes(d, top)) : NAN;
}

inline float merged_max(const double* parts, int64_t chunks) {
  float top = -INFINITY;
  for (int64_t c = 0; c < chunks; ++c) {
    const auto part = static_cast<float>(parts[c]);
    if (part > top || std::isnan(part)) top = part;
    if (std::isnan(top)) break;
  }
  return top;
}

// `parts` (chunks) in scratch. Runs body(range) -> double for every chunk.
template <class Body>
void for_chunks(ThreadPool& pool, int64_t n, double* parts, const Body& body) {
  pool.parallel_for(divergence_chunks(n), [&](int64_t chunk, int) HWY_ATTR {
    parts[chunk] = body(chunk_range(n, kDivergenceChunk, chunk));
  });
}
// The same for sums: body is called for short pieces of the chunk, so that float sums stay short on any
// target.
template <class Body>
void sum_chunks(ThreadPool& pool, int64_t n, double* parts, const Body& body) {
  constexpr int64_t kPiece = 512;
  for_chunks(pool, n, parts, [&](Range range) HWY_ATTR {
    double sum = 0;
    for (int64_t i = range.begin; i < range.end; i += kPiece)
      sum += body({i, std::min(i + kPiece, range.end)});
    return sum;
  });
}
inline double merged_sum(const double* parts, int64_t chunks) {
  double sum = 0;
  for (int64_t c = 0; c < chunks; ++c) sum += parts[c];
  return sum;
}

// y becomes p; returns the divergence. `parts` has divergence_chunks(n) values.
inline double kl_in_place(ThreadPool& pool, Vec<float> y, double* parts) {
  const DivergenceTag d;
  const int64_t n = y.size, chunks = divergence_chunks(n);
  for_chunks(pool, n, parts,
             [&](Range range) HWY_ATTR { return static_cast<double>(range_max(y.data, range)); });
  const float max = merged_max(parts, chunks);
  sum_chunks(pool, n, parts, [&](Range range) HWY_ATTR {
    const DivergenceVec shift = hn::Set(d, max);
    DivergenceVec sum = hn::Zero(d);
    for_vectors(range, [&](int64_t i, int64_t count) HWY_ATTR {
      const DivergenceVec e = exp_nonpositive(d, hn::Sub(load_some(y.data + i, count), shift));
      store_some(e, y.data + i, count);
      sum = hn::Add(sum, first_lanes(e, count));
    });
    return lanes_total(sum);
  });
  const double total = merged_sum(parts, chunks);
  const auto scale = static_cast<float>(1 / total);
  for_chunks(pool, n, parts, [&](Range range) HWY_ATTR {
    for_vectors(range, [&](int64_t i, int64_t count) HWY_ATTR {
      store_some(hn::Mul(load_some(y.data + i, count), hn::Set(d, scale)), y.data + i, count);
    });
    return 0.0;
  });
  return static_cast<double>(max) + std::log(total) - std::log(static_cast<double>(n));
}

inline double chi2_in_place(ThreadPool& pool, Vec<float> y, bool exact, double* parts) {
  const DivergenceTag d;
  const int64_t n = y.size;
  const auto inv_n = static_cast<float>(1 / static_cast<double>(n));
  sum_chunks(pool, n, parts, [&](Range range) HWY_ATTR {
    DivergenceVec sum = hn::Zero(d);
    for_vectors(range, [&](int64_t i, int64_t count) HWY_ATTR {
      DivergenceVec t = hn::Add(load_some(y.data + i, count), hn::Set(d, 1.f));
      if (exact) t = math::at_least(d, 0.f, t);
      store_some(hn::Mul(t, hn::Set(d, inv_n)), y.data + i, count);
      t = first_lanes(t, count);
      sum = hn::MulAdd(t, t, sum);
    });
    return lanes_total(sum);
  });
  const double mean = 0.5 * merged_sum(parts, divergence_chunks(n)) / static_cast<double>(n);
  return exact ? mean - 0.5 : mean;
}

inline double divergence_in_place(ThreadPool& pool, Divergence divergence, Vec<float> y, double* parts) {
  if (divergence == Divergence::Kl) return kl_in_place(pool, y, parts);
  return chi2_in_place(pool, y, divergence == Divergence::Chi2Exact, parts);
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
