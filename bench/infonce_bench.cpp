// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// op/infonce/<n>      forward and backward of the loss in one sweep, d = 32, the paper's metric
// op/infonce/fit      exponents of time and scratch over the sizes above: 2 and 1 is what the design promises
// step/infonce/<n>    the encoder's training step: draw, gather, forward, loss, backward, clip, Adam
// An op is checked by one row of its gradient in double, and by its whole gradient on fewer rows along itself
// (network_bench.cpp); a step by data of one state, where the loss is log n.
#include <array>
#include <map>
#include <memory>

#include "../kernels/infonce.h"
#include "../models/encoder.h"
#include "dual_tables.h"
#include "suite.h"

namespace pwdice::bench {
namespace {

constexpr int64_t kSizes[] = {1024, 2048, 4096, 8192, 16384, 32768};
constexpr int64_t kWidth = kFeatures;

Work loss_work(int64_t n) {
  const double pairs = static_cast<double>(n) * static_cast<double>(n);
  return {6 * pairs * static_cast<double>(kWidth), pairs};
}

struct Batch {
  int64_t n;
  std::vector<float> v1, v2, w0, d_v1, d_v2, d_w0;
  float loss = 0;

  explicit Batch(int64_t rows) : n(rows) {
    v1 = random_values(n * kWidth, 1, 1), v2 = random_values(n * kWidth, 0.5, 2);
    for (size_t i = 0; i < v2.size(); ++i) v2[i] += v1[i];
    w0.assign(kWidth * kWidth, 0.05f);
    for (int64_t k = 0; k < kWidth; ++k) w0[static_cast<size_t>(k * kWidth + k)] = 1.f;
    d_v1.resize(v1.size()), d_v2.resize(v1.size()), d_w0.resize(w0.size());
  }
  void run(Context& ctx) {
    infonce_train(ctx, {{{v1.data(), n, kWidth},
                         {v2.data(), n, kWidth},
                         {w0.data(), kWidth, kWidth},
                         ScoreMetric::SoftplusGram,
                         true,
                         1.f},
                        {&loss, 1},
                        {d_v1.data(), n, kWidth},
                        {d_v2.data(), n, kWidth},
                        {d_w0.data(), kWidth, kWidth}});
  }
};

using Row = std::array<double, kWidth>;

Row unit(const std::vector<float>& v, int64_t i, double& norm) {
  Row z{};
  norm = 0;
  for (size_t k = 0; k < kWidth; ++k) {
    z[k] = static_cast<double>(v[static_cast<size_t>(i * kWidth) + k]);
    norm += z[k] * z[k];
  }
  norm = std::sqrt(norm);
  for (double& x : z) x /= norm;
  return z;
}

double product(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t k = 0; k < kWidth; ++k) sum += a[k] * b[k];
  return sum;
}

using Metric = std::array<Row, kWidth>;

Metric metric(const Batch& b) {
  Metric m{};
  const auto factor = [&](size_t r, size_t c) {
    return std::log1p(std::exp(static_cast<double>(b.w0[r * kWidth + c])));
  };
  for (size_t r = 0; r < kWidth; ++r) {
    for (size_t c = 0; c < kWidth; ++c) {
      for (size_t k = 0; k < kWidth; ++k) m[r][c] += factor(r, k) * factor(c, k);
    }
  }
  return m;
}

// M z1_i
Row query(const Batch& b, const Metric& m, int64_t i) {
  double norm = 0;
  const Row z = unit(b.v1, i, norm);
  Row u{};
  for (size_t r = 0; r < kWidth; ++r) u[r] = product(m[r], z);
  return u;
}

// d_v1 of row i from its n scores.
bool row_is_right(const Batch& b, int64_t i) {
  const Metric m = metric(b);
  double norm = 0, other = 0, sum = 0, top = -INFINITY;
  const Row z = unit(b.v1, i, norm), u = query(b, m, i);
  Row a{}, d_z{};
  std::vector<double> s;
  for (int64_t j = 0; j < b.n; ++j)
    s.push_back(product(u, unit(b.v2, j, other))), top = std::max(top, s.back());
  for (double v : s) sum += std::exp(v - top);
  for (int64_t j = 0; j < b.n; ++j) {
    const double g =
        (std::exp(s[static_cast<size_t>(j)] - top) / sum - (i == j ? 1 : 0)) / static_cast<double>(b.n);
    const Row z2 = unit(b.v2, j, other);
    for (size_t k = 0; k < kWidth; ++k) a[k] += g * z2[k];
  }
  for (size_t r = 0; r < kWidth; ++r) d_z[r] = product(m[r], a);
  const double along = product(z, d_z), scale = std::sqrt(product(d_z, d_z)) / norm;
  bool ok = true;
  for (size_t k = 0; k < kWidth; ++k) {
    const float got = b.d_v1[static_cast<size_t>(i * kWidth) + k];
    ok &= close(static_cast<double>(got), (d_z[k] - z[k] * along) / norm, scale, 1e-4);
  }
  return ok;
}

double loss_of(const Batch& b) {
  const Metric m = metric(b);
  std::vector<Row> keys;
  double norm = 0, total = 0;
  for (int64_t j = 0; j < b.n; ++j) keys.push_back(unit(b.v2, j, norm));
  for (int64_t i = 0; i < b.n; ++i) {
    const Row u = query(b, m, i);
    double sum = 0;
    const double own = product(u, keys[static_cast<size_t>(i)]);
    for (const Row& z : keys) sum += std::exp(product(u, z) - own);
    total += std::log(sum);
  }
  return total / static_cast<double>(b.n);
}

bool is_right(const Batch& b) {
  double squares = 0;
  for (const auto* d : {&b.d_v1, &b.d_v2, &b.d_w0}) {
    for (const float g : *d) squares += static_cast<double>(g) * static_cast<double>(g);
  }
  const auto moved = [&](double step) {
    Batch at = b;
    const auto move = [&](std::vector<float>& x, const std::vector<float>& d) {
      for (size_t i = 0; i < x.size(); ++i) x[i] += static_cast<float>(step * static_cast<double>(d[i]));
    };
    move(at.v1, b.d_v1), move(at.v2, b.d_v2), move(at.w0, b.d_w0);
    return loss_of(at);
  };
  const double step = 3e-2 / std::sqrt(squares), want = loss_of(b);
  return close(static_cast<double>(b.loss), want, want) &&
         close((moved(step) - moved(-step)) / (2 * step), squares, squares, 1e-2);
}

// -- benchmarks ------------------------------------------------------------------------------------------

constexpr int64_t kCheckRows = 700;  // several blocks of rows and chunks of columns, and a rest of each

using Medians = std::map<int64_t, double>;  // milliseconds by size

// Exponent of y ~ n^e by least squares on logarithms.
double exponent(const std::map<int64_t, double>& values) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [size, value] : values) {
    const double lx = std::log(static_cast<double>(size)), ly = std::log(value);
    n += 1, x += lx, y += ly, xx += lx * lx, xy += lx * ly;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

void add_op(Suite& suite, int64_t n, const std::shared_ptr<Medians>& medians) {
  add("op/infonce/" + std::to_string(n), [&suite, n, medians](benchmark::State& state) {
    Batch few(kCheckRows), batch(n);
    few.run(suite.ctx), batch.run(suite.ctx);
    if (!is_right(few) || !row_is_right(batch, n / 3)) return fail(state, "the gradient is wrong");
    time_iterations(state, suite.ctx, suite.machine, loss_work(n), [&] { batch.run(suite.ctx); });
    const auto bytes = static_cast<double>(infonce_scratch_bytes(suite.ctx, n, kWidth));
    state.counters["scratch_MiB"] = bytes / (1 << 20);
    (*medians)[n] = state.counters["median_ms"].value;
  });
}

void add_fit(Suite& suite, const std::shared_ptr<Medians>& medians) {
  add("op/infonce/fit", [&suite, medians](benchmark::State& state) {
    std::map<int64_t, double> scratch;
    for (const auto& [n, ms] : *medians)
      scratch[n] = static_cast<double>(infonce_scratch_bytes(suite.ctx, n, kWidth));
    for (auto _ : state) {
    }
    if (scratch.size() < 2)
      return fail(state, "fewer than two sizes were timed before it: take --benchmark_filter=op/infonce");
    state.counters["time_exponent"] = exponent(*medians);
    state.counters["scratch_exponent"] = exponent(scratch);
  })->Iterations(1);
}

void add_step(Suite& suite, int64_t n) {
  constexpr int64_t kHidden = Encoder::kWidth;
  Work work = loss_work(n);
  work.flop += mlp_flop(2 * n, kStateDim, kHidden, kWidth);
  add("step/infonce/" + std::to_string(n), [&suite, n, work](benchmark::State& state) {
    Context& ctx = suite.ctx;
    const DataTables data = make_tables(ctx, 4 * n, 1, 4 * n);
    const double before = resident_mib();
    {
      const DataTables one = make_tables(ctx, 16, 1, 1);
      Encoder encoder(ctx, one, {.batch = n}, 7);
      encoder.step(ctx);
      const double want = std::log(static_cast<double>(n));
      if (!close(static_cast<double>(encoder.optimiser().report(ctx).loss), want, want)) {
        return fail(state, "the loss is wrong");
      }
    }
    Encoder encoder(ctx, data, {.batch = n}, 7);
    time_iterations(state, suite.ctx, suite.machine, work, [&] { encoder.step(ctx); });
    state.counters["grown_MiB"] = resident_mib() - before;
  });
}

}  // namespace

void register_infonce(Suite& suite) {
  const auto medians = std::make_shared<Medians>();
  for (int64_t n : {4096, 8192, 16384}) add_step(suite, n);
  for (int64_t n : kSizes) add_op(suite, n, medians);
  add_fit(suite, medians);
}

}  // namespace pwdice::bench
