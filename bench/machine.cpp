// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// Bursts of about half a millisecond: long against the hand-over to the threads, short against a scheduler
// tick.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/machine.cpp"
// clang-format off
#include "hwy/foreach_target.h"
#include "../kernels/cpu/vector_math-inl.h"
// clang-format on

#include "machine.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "../kernels/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace pwdice::cpu {
namespace HWY_NAMESPACE {

// Each returns the number of operations done; `sink` keeps the compiler honest. Twelve chains cover the
// latency of the FMA on every CPU of the last decade, four those of a polynomial.
double fma_burst(float* sink) {
  constexpr int kChains = 12, kRounds = 150000;
  const hn::ScalableTag<float> d;
  const auto m = hn::Set(d, 0.999f), c = hn::Set(d, 1e-3f);
  const auto start = [&](float value) HWY_ATTR { return hn::Set(d, value); };  // equal chains would be merged
  auto a0 = start(0), a1 = start(1), a2 = start(2), a3 = start(3), a4 = start(4), a5 = start(5);
  auto a6 = start(6), a7 = start(7), a8 = start(8), a9 = start(9), a10 = start(10), a11 = start(11);
  for (int i = 0; i < kRounds; ++i) {
    a0 = hn::MulAdd(a0, m, c), a1 = hn::MulAdd(a1, m, c), a2 = hn::MulAdd(a2, m, c),
    a3 = hn::MulAdd(a3, m, c);
    a4 = hn::MulAdd(a4, m, c), a5 = hn::MulAdd(a5, m, c), a6 = hn::MulAdd(a6, m, c),
    a7 = hn::MulAdd(a7, m, c);
    a8 = hn::MulAdd(a8, m, c), a9 = hn::MulAdd(a9, m, c), a10 = hn::MulAdd(a10, m, c),
    a11 = hn::MulAdd(a11, m, c);
  }
  const auto s0 = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), s1 = hn::Add(hn::Add(a4, a5), hn::Add(a6, a7));
  const auto s2 = hn::Add(hn::Add(a8, a9), hn::Add(a10, a11));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), s2)));
  return 2.0 * kChains * kRounds * static_cast<double>(hn::Lanes(d));
}

template <class F>
double function_burst(float* sink, F f) {
  constexpr int kRounds = 60000;
  const hn::ScalableTag<float> d;
  const auto step = hn::Set(d, -1e-5f);
  auto x0 = hn::Set(d, -1.f), x1 = hn::Set(d, -2.f), x2 = hn::Set(d, -3.f), x3 = hn::Set(d, -4.f);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (int i = 0; i < kRounds; ++i) {
    s0 = hn::Add(s0, f(d, x0)), s1 = hn::Add(s1, f(d, x1)), s2 = hn::Add(s2, f(d, x2)),
    s3 = hn::Add(s3, f(d, x3));
    x0 = hn::Add(x0, step), x1 = hn::Add(x1, step), x2 = hn::Add(x2, step), x3 = hn::Add(x3, step);
  }
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  return 4.0 * kRounds * static_cast<double>(hn::Lanes(d));
}

double exp_burst(float* sink) {  // the fastest there is: scores are in units of log 2
  return function_burst(sink, [](auto d, auto x) HWY_ATTR { return exp2_nonpositive(d, x); });
}
double tanh_burst(float* sink) {
  return function_burst(sink, [](auto d, auto x) HWY_ATTR { return tanh(d, x); });
}

}  // namespace HWY_NAMESPACE
}  // namespace pwdice::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pwdice::cpu {
HWY_EXPORT(fma_burst);
HWY_EXPORT(exp_burst);
HWY_EXPORT(tanh_burst);

double best_fma_burst(float* sink) { return HWY_DYNAMIC_DISPATCH(fma_burst)(sink); }
double best_exp_burst(float* sink) { return HWY_DYNAMIC_DISPATCH(exp_burst)(sink); }
double best_tanh_burst(float* sink) { return HWY_DYNAMIC_DISPATCH(tanh_burst)(sink); }

}  // namespace pwdice::cpu

namespace pwdice::bench {
namespace {

using Burst = double (*)(float*);
using Clock = std::chrono::steady_clock;

// What each thread reaches, all threads at once.
std::vector<double> rates(Context& ctx, Burst burst) {
  std::vector<double> rate(static_cast<size_t>(ctx.threads()));
  ctx.pool().parallel_for(ctx.threads(), [&](int64_t, int thread) {
    float sink = 0;
    const auto start = Clock::now();
    const double operations = burst(&sink);
    const std::chrono::duration<double> time = Clock::now() - start;
    rate[static_cast<size_t>(thread)] = operations / time.count();
  });
  return rate;
}

// The sum of the threads' best.
double best_rate(Context& ctx, Burst burst) {
  constexpr int kBursts = 600;
  std::vector<double> best(static_cast<size_t>(ctx.threads()));
  for (int i = 0; i < kBursts; ++i) {
    const std::vector<double> now = rates(ctx, burst);
    for (size_t t = 0; t < best.size(); ++t) best[t] = std::max(best[t], now[t]);
  }
  return std::accumulate(best.begin(), best.end(), 0.0);
}

}  // namespace

Machine measure_machine(Context& ctx) {
  return {best_rate(ctx, cpu::best_fma_burst), best_rate(ctx, cpu::best_exp_burst),
          best_rate(ctx, cpu::best_tanh_burst)};
}

double bound_seconds_now(Context& ctx, const Work& work) {
  const auto seconds = [&](double operations, Burst burst) {
    if (operations == 0) return 0.0;
    const std::vector<double> now = rates(ctx, burst);
    return operations / std::accumulate(now.begin(), now.end(), 0.0);
  };
  return seconds(work.flop, cpu::best_fma_burst) + seconds(work.exp, cpu::best_exp_burst) +
         seconds(work.tanh, cpu::best_tanh_burst);
}

}  // namespace pwdice::bench
#endif
