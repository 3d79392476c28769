// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// pwdice_gpu_bench [--small]: the fused ops of the CUDA backend beside the same formulas unfused, with cuBLAS
// for the products and the n x n matrix in memory. Prints rows of a Markdown table. Times are CUDA events
// around a batch of calls on a stream of our own, median of several; each pair is compared before it is
// timed.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>

#include "../host/arena.h"
#include "../host/tensor.h"
#include "../kernels/elementwise.h"
#include "../kernels/infonce.h"
#include "../kernels/linear.h"
#include "../kernels/matmul.h"
#include "../kernels/reduce.h"
#include "../kernels/transport.h"
#include "baseline.h"

namespace pwdice::bench {
namespace {

void require(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

class Timer {
 public:
  explicit Timer(bool small) : batches_(small ? 1 : 15), calls_(small ? 1 : 20) {
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    require(cudaEventCreate(&begin_));
    require(cudaEventCreate(&end_));
  }
  ~Timer() {
    cudaEventDestroy(begin_), cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  cudaStream_t stream() const { return stream_; }

  // Milliseconds of one call.
  double operator()(const std::function<void()>& call) const {
    for (int i = 0; i < std::min(3, calls_); ++i) call();
    std::vector<float> times;
    for (int b = 0; b < batches_; ++b) {
      float ms = 0;
      require(cudaEventRecord(begin_, stream_));
      for (int i = 0; i < calls_; ++i) call();
      require(cudaEventRecord(end_, stream_));
      require(cudaEventSynchronize(end_));
      require(cudaEventElapsedTime(&ms, begin_, end_));
      times.push_back(ms / static_cast<float>(calls_));
    }
    std::nth_element(times.begin(), times.begin() + batches_ / 2, times.end());
    return static_cast<double>(times[static_cast<size_t>(batches_ / 2)]);
  }

 private:
  int batches_, calls_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

Array<float> device(Context& ctx, int64_t n, uint32_t seed) {
  Array<float> values(ctx, n);
  upload(ctx, values.view(), random_values(n, 0.1, seed));
  return values;
}

// A wrong result is no measurement.
void print(const std::string& name, double ours, double baseline, double gflop, double error) {
  if (!(error < 2e-2)) throw std::runtime_error(name + ": the fused result differs by " + std::to_string(error));
  std::printf("| %s | %.4f | %.4f | %.2f | %.0f | %.1e |\n", name.c_str(), ours, baseline, baseline / ours,
              gflop / (ours * 1e-3), error);
}

double difference(Context& a, Mat<const float> x, Context& b, Mat<const float> y) {
  const auto first = download(a, Vec<const float>{x.data, x.size()});
  const auto second = download(b, Vec<const float>{y.data, y.size()});
  double worst = 0, scale = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(first[i]) - static_cast<double>(second[i])));
    scale = std::max(scale, std::abs(static_cast<double>(second[i])));
  }
  return worst / scale;
}

// s = v1 v2^T stored, p = exp(s) / row sums, d_v1 = (p v2 - v2)/n, d_v2 = (p^T v1 - v1)/n: five passes over
// n^2. Scores are small here, so that no maximum has to be taken.
class UnfusedInfoNce {
 public:
  UnfusedInfoNce(Context& ctx, Mat<const float> v1, Mat<const float> v2)
      : ctx_(ctx),
        v1_(v1),
        v2_(v2),
        scores_(ctx, v1.rows * v1.rows),
        sums_(ctx, v1.rows),
        scaled_(ctx, v1.size()),
        d_v1_(ctx, v1.size()),
        d_v2_(ctx, v1.size()) {}
  void run() {
    const int64_t n = v1_.rows, d = v1_.cols;
    const Mat<float> p = scores_.matrix(n, n);
    matmul(ctx_, {v1_, v2_, false, true, p});
    unary_map(ctx_, {Unary::Exp, scores_.view(), scores_.view()});
    row_sum(ctx_, {p, sums_.view()});
    unary_map(ctx_, {Unary::Reciprocal, sums_.view(), sums_.view()});
    matmul(ctx_, {p, v2_, false, false, scaled_.matrix(n, d)});
    scale_rows(ctx_, {scaled_.matrix(n, d), sums_.view(), d_v1_.matrix(n, d)});
    scale_rows(ctx_, {v1_, sums_.view(), scaled_.matrix(n, d)});
    matmul(ctx_, {p, scaled_.matrix(n, d), true, false, d_v2_.matrix(n, d)});
    finish(d_v1_, v2_);
    finish(d_v2_, v1_);
  }
  Mat<const float> d_v1() { return d_v1_.matrix(v1_.rows, v1_.cols); }

 private:
  void finish(Array<float>& gradient, Mat<const float> own) {
    const Vec<float> g = gradient.view();
    accumulate(ctx_, {Vec<const float>{own.data, own.size()}, -1.f, g});
    affine(ctx_, {g, 1.f / static_cast<float>(own.rows), 0.f, g});
  }
  Context& ctx_;
  Mat<const float> v1_, v2_;
  Array<float> scores_, sums_, scaled_, d_v1_, d_v2_;
};

ContextOptions options(const Timer& timer, GemmLibrary library,
                       ScorePrecision precision = ScorePrecision::Fp32) {
  ContextOptions o;
  o.backend = Backend::Cuda, o.stream = timer.stream(), o.gemm = library, o.score_precision = precision;
  o.scratch_bytes = size_t{256} << 20;
  return o;
}

void bench_infonce(const Timer& timer, int64_t n, int64_t d, ScorePrecision precision, const char* label) {
  Context ours(options(timer, GemmLibrary::Cutlass, precision)),
      cublas(options(timer, GemmLibrary::CuBlas, precision));
  const Array<float> a = device(ours, n * d, 1), b = device(ours, n * d, 2), w0 = device(ours, d * d, 3);
  const Array<float> d_v1(ours, n * d), d_v2(ours, n * d), d_w0(ours, d * d), loss(ours, 1);
  const InfoNceTrain op{{a.matrix(n, d), b.matrix(n, d), w0.matrix(d, d), ScoreMetric::Identity, false, 1.f},
                        loss.view(),
                        d_v1.matrix(n, d),
                        d_v2.matrix(n, d),
                        d_w0.matrix(d, d)};
  UnfusedInfoNce unfused(cublas, a.matrix(n, d), b.matrix(n, d));
  infonce_train(ours, op);
  unfused.run();
  const double error = difference(ours, d_v1.matrix(n, d), cublas, unfused.d_v1());
  const double fused_ms = timer([&] { infonce_train(ours, op); }), ms = timer([&] { unfused.run(); });
  const double gflop = 10e-9 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(d);
  print("InfoNCE " + std::string(label) + ", n " + std::to_string(n) + ", d " + std::to_string(d), fused_ms,
        ms, gflop, error);
}

// [scale x | (u - beta |x|^2)/eps | 1] or, for the other side, [y | 1 | (u - beta |y|^2)/eps]: one product of the two gives
// (u_i + v_j - beta |x_i - y_j|^2)/eps.
std::vector<float> with_terms(const std::vector<float>& x, const std::vector<float>& u, int64_t d, float beta, float eps, bool left) {
  std::vector<float> out;
  for (size_t i = 0; i < u.size(); ++i) {
    float squares = 0;
    for (int64_t k = 0; k < d; ++k) {
      const float v = x[i * static_cast<size_t>(d) + static_cast<size_t>(k)];
      squares += v * v;
      out.push_back(left ? 2 * beta / eps * v : v);
    }
    const float term = (u[i] - beta * squares) / eps;
    out.push_back(left ? term : 1), out.push_back(left ? 1 : term);
  }
  return out;
}

// The joint loss's gradients: row and column sums of exp of the stored n x m matrix, beside one fused sweep.
void bench_transport(const Timer& timer, int64_t n, int64_t m, int64_t d) {
  constexpr float kBeta = 5, kEps = 0.5f;
  Context ours(options(timer, GemmLibrary::Cutlass)), cublas(options(timer, GemmLibrary::CuBlas));
  const std::vector<float> hx = random_values(n * d, 0.1, 1), hy = random_values(m * d, 0.1, 2),
                           ha = random_values(n, 0.1, 3), hb = random_values(m, 0.1, 4);
  const Array<float> x = device(ours, n * d, 1), y = device(ours, m * d, 2), a = device(ours, n, 3), b = device(ours, m, 4);
  const Array<float> none(ours, n), q(ours, m), loss(ours, 1), d_a(ours, n), d_b(ours, m);
  fill(ours, none.view(), 0), fill(ours, q.view(), 1.f / static_cast<float>(m));
  const Array<float> left(cublas, n * (d + 2)), right(cublas, m * (d + 2)), scores(cublas, n * m), rows(cublas, n), cols(cublas, m);
  upload(cublas, left.view(), with_terms(hx, ha, d, kBeta, kEps, true));
  upload(cublas, right.view(), with_terms(hy, hb, d, kBeta, kEps, false));
  const auto fused = [&] {
    transport_joint(ours, {{Distance::SquaredEuclidean, kBeta, x.matrix(n, d), y.matrix(m, d), none.view()}, a.view(), b.view(),
                           q.view(), kEps, loss.view(), d_a.view(), d_b.view()});
  };
  const auto unfused = [&] {
    matmul(cublas, {left.matrix(n, d + 2), right.matrix(m, d + 2), false, true, scores.matrix(n, m)});
    unary_map(cublas, {Unary::Exp, scores.view(), scores.view()});
    row_sum(cublas, {scores.matrix(n, m), rows.view()});
    column_sum(cublas, {scores.matrix(n, m), cols.view()});
  };
  fused();
  unfused();
  double total = 0;
  for (const float v : download(cublas, rows.view())) total += static_cast<double>(v);
  const Array<float> normalised(cublas, n);
  affine(cublas, {rows.view(), static_cast<float>(1 / total), 0, normalised.view()});
  const double error = difference(ours, d_a.matrix(1, n), cublas, normalised.matrix(1, n));
  const double fused_ms = timer(fused), ms = timer(unfused);
  print("transport " + std::to_string(n) + " x " + std::to_string(m) + ", d " + std::to_string(d), fused_ms, ms,
        2e-9 * static_cast<double>(n) * static_cast<double>(m) * static_cast<double>(d), error);
}

void bench_layer(const Timer& timer, int64_t n, int64_t in, int64_t out) {
  Context ours(options(timer, GemmLibrary::Cutlass)), cublas(options(timer, GemmLibrary::CuBlas));
  const Array<float> x = device(ours, n * in, 1), w = device(ours, out * in, 2), bias = device(ours, out, 3);
  const Array<float> y(ours, n * out), y2(ours, n * out), d_w(ours, out * in), d_b(ours, out);
  const auto run = [&](Context& ctx, const Array<float>& result) {
    linear_forward(
        ctx, {x.matrix(n, in), w.matrix(out, in), bias.view(), Activation::Relu, result.matrix(n, out)});
    linear_backward_params(ctx, {result.matrix(n, out), x.matrix(n, in), d_w.matrix(out, in), d_b.view()});
  };
  run(ours, y);
  run(cublas, y2);
  const double error = difference(ours, y.matrix(n, out), cublas, y2.matrix(n, out));
  const double fused_ms = timer([&] { run(ours, y); }), ms = timer([&] { run(cublas, y2); });
  print("layer " + std::to_string(n) + " x " + std::to_string(in) + " x " + std::to_string(out), fused_ms, ms,
        4e-9 * static_cast<double>(n) * static_cast<double>(in) * static_cast<double>(out), error);
}

void run(bool small) {
  const Timer timer(small);
  std::printf(
      "| what | ours ms | cuBLAS, unfused ms | ratio | GFLOP/s | difference |\n|---|---|---|---|---|---|\n");
  const int64_t n = small ? 128 : 4096;
  bench_infonce(timer, n, 32, ScorePrecision::Fp32, "FP32");
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, 0));
  if (properties.major >= 8) {
    bench_infonce(timer, n, 32, ScorePrecision::Tf32, "TF32");
    bench_infonce(timer, n, 32, ScorePrecision::Bf16, "BF16");
  }
  if (!small) bench_infonce(timer, 16384, 32, ScorePrecision::Fp32, "FP32");
  bench_transport(timer, n, small ? 96 : 1000, 32);
  bench_layer(timer, small ? 64 : 1024, 11, small ? 32 : 256);
  bench_layer(timer, small ? 64 : 1024, small ? 32 : 256, small ? 32 : 256);
}

}  // namespace
}  // namespace pwdice::bench

int main(int argc, char** argv) {
  try {
    pwdice::bench::run(argc > 1 && std::strcmp(argv[1], "--small") == 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pwdice_gpu_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
