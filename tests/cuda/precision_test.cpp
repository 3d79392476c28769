// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The pwdice authors

// TF32 and BF16 scores against FP32: they differ, and by no more than their rounding explains.
#include <algorithm>
#include <cmath>

#include "../../kernels/infonce.h"
#include "../../kernels/linear.h"
#include "../op_case.h"

namespace pwdice::test {
namespace {

struct Gradients {
  float loss;
  std::vector<float> d_v1, d_v2, d_w0;
};

Gradients train(ScorePrecision precision, int64_t n, int64_t d) {
  ContextOptions options{.backend = Backend::Cuda, .score_precision = precision};
  Context ctx(options);
  OpRun run(ctx, 0);
  const auto v1 = normal(n * d, 1), v2 = normal(n * d, 2), w0 = uniform(d * d, 0.f, 1.f, 3);
  const InfoNce in{run.in(v1, n, d),           run.in(v2, n, d), run.in(w0, d, d), ScoreMetric::Gram, true,
                   4.f / static_cast<float>(d)};
  infonce_train(
      ctx, {in, run.out("loss", 1), run.out("d_v1", n, d), run.out("d_v2", n, d), run.out("d_w0", d, d)});
  const Outputs out = run.finish();
  return {out.value("loss"), out["d_v1"], out["d_v2"], out["d_w0"]};
}

// Largest difference over largest value.
double relative(const std::vector<float>& got, const std::vector<float>& want) {
  double error = 0, scale = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error = std::max(error, std::abs(double(got[i]) - double(want[i])));
    scale = std::max(scale, std::abs(double(want[i])));
  }
  return error / scale;
}

struct Mode {
  const char* name;
  ScorePrecision precision;
  double unit;  // half a spacing of the format, relative
};
class ScorePrecisionTest : public testing::TestWithParam<std::tuple<Mode, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(, ScorePrecisionTest,
                         testing::Combine(testing::Values(Mode{"Tf32", ScorePrecision::Tf32, 0x1p-11},
                                                          Mode{"Bf16", ScorePrecision::Bf16, 0x1p-8}),
                                          testing::Values(int64_t{8}, int64_t{32}, int64_t{64},
                                                          int64_t{128})),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_width" +
                                  std::to_string(std::get<1>(test.param)) + "_Cuda";
                         });

TEST_P(ScorePrecisionTest, IsAsCloseToFp32AsItsRounding) {
  const auto [mode, d] = GetParam();
  const int64_t n = 161;  // a whole block of rows, a part of one, and a part of a tile
  const Gradients exact = train(ScorePrecision::Fp32, n, d), got = train(mode.precision, n, d);
  const double loss_error = std::abs(got.loss - exact.loss) / std::abs(exact.loss);
  RecordProperty("loss_error", std::to_string(loss_error));
  RecordProperty("d_v1_error", std::to_string(relative(got.d_v1, exact.d_v1)));
  EXPECT_NE(got.d_v1, exact.d_v1) << "the tensor cores were not used";
  EXPECT_LT(loss_error, 2 * mode.unit);
  EXPECT_LT(relative(got.d_v1, exact.d_v1), 16 * mode.unit);
  EXPECT_LT(relative(got.d_v2, exact.d_v2), 16 * mode.unit);
  EXPECT_LT(relative(got.d_w0, exact.d_w0), 16 * mode.unit);
  const Gradients again = train(mode.precision, n, d);
  EXPECT_EQ(again.d_v1, got.d_v1);
  EXPECT_EQ(again.loss, got.loss);
}

// All three layouts of operands, with edges in every direction.
TEST(LayerPrecision, Tf32LayersAreCloseToFp32_Cuda) {
  const int64_t n = 150, in = 67, out = 40;
  const auto x = normal(n * in, 1), w = normal(out * in, 2), b = normal(out, 3), d = normal(n * out, 4);
  std::vector<float> y[2], d_x[2], d_w[2];
  for (int k = 0; k < 2; ++k) {
    Context ctx(
        {.backend = Backend::Cuda, .score_precision = k == 0 ? ScorePrecision::Fp32 : ScorePrecision::Tf32});
    OpRun run(ctx, 0);
    const auto rows = run.in(x, n, in), weights = run.in(w, out, in), d_pre = run.in(d, n, out);
    linear_forward(ctx, {rows, weights, run.in(b), Activation::Tanh, run.out("y", n, out)});
    linear_backward_input(ctx, {d_pre, weights, rows, Activation::None, run.out("d_x", n, in)});
    linear_backward_params(ctx, {d_pre, rows, run.out("d_w", out, in), run.out("d_b", out)});
    const Outputs got = run.finish();
    y[k] = got["y"], d_x[k] = got["d_x"], d_w[k] = got["d_w"];
  }
  const auto expect_near = [](const std::vector<float>* result, int64_t depth) {
    EXPECT_NE(result[0], result[1]);
    EXPECT_LT(relative(result[1], result[0]), std::sqrt(double(depth)) * 4 * 0x1p-11);
  };
  expect_near(y, in);
  expect_near(d_x, out);
  expect_near(d_w, n);
}

}  // namespace
}  // namespace pwdice::test
